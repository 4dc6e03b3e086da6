"""The pages of the business: what a collaborator fills in of it."""

from __future__ import annotations

from litestar import get, post

from billfold.web.onboarding.saving import Place, find_place, save_step, show_step
from billfold.web.onboarding.visit import Visit, visit_of
from billfold.web.page_context import PUBLIC, PageContext, PageResponse


@get("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def show_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Show a step of the business."""
    visit = await visit_of(page, invite_id)
    return await show_step(visit, _place(visit, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def save_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Save a step of the business."""
    visit = await visit_of(page, invite_id)
    return await save_step(visit, _place(visit, step)) if isinstance(visit, Visit) else visit


def _place(visit: Visit, key: str) -> Place:
    """Return a step of the business. Raises NotFound, also for who is not invited to fill it in."""
    return find_place(visit.business_steps, key, "business")
