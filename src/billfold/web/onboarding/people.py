"""The steps of the business and of related parties: filled in by a collaborator, or by a party of their own."""

from uuid import UUID

import msgspec
from litestar import get, post

from billfold.http.raw_request import decode
from billfold.onboarding.applications.content import Content, content_of
from billfold.onboarding.applications.forms import RelatedPartyForm
from billfold.onboarding.invites import invited
from billfold.onboarding.invites.types import InvitationType
from billfold.platform.errors import NotFound
from billfold.web.onboarding.form_content import content_in, values_of
from billfold.web.onboarding.saving import (
    Outcome,
    Place,
    find_place,
    keep_rest,
    save_right,
    save_step,
    show_conflict,
    show_new,
    show_step,
)
from billfold.web.onboarding.visit import Visit, visit_of
from billfold.web.page_context import PUBLIC, PageContext, PageResponse, path_id, redirect


@get("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def show_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Show a step of the business."""
    visit = await visit_of(page, invite_id)
    return await show_step(visit, _business_place(visit, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def save_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Save a step of the business."""
    visit = await visit_of(page, invite_id)
    return await save_step(visit, _business_place(visit, step)) if isinstance(visit, Visit) else visit


def _business_place(visit: Visit, key: str) -> Place:
    """Return a step of the business. Raises NotFound, also for who is not invited to fill it in."""
    return find_place(visit.business_steps, key, "business")


@get("/onboarding/{invite_id:str}/people/new", opt=PUBLIC)
async def show_new_person(invite_id: str, page: PageContext) -> PageResponse:
    """Show the form that adds a person."""
    visit = await visit_of(page, invite_id)
    return show_new(visit, _new(visit), Outcome({})) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/new", opt=PUBLIC)
async def add_person(invite_id: str, page: PageContext) -> PageResponse:
    """Add a person under their name; what else is wrong is kept for later."""
    visit = await visit_of(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    place = _new(visit)
    content = content_in(place.step.fields, page.form, {})
    own_id = visit.call.new_resource_id(visit.bank.seed)
    if own_id in visit.view.parties:  # the form was sent before
        return await _again(visit, own_id, content)
    added: list[UUID] = []

    async def add(right: Content) -> None:
        if right.get("name"):
            data = decode(msgspec.json.encode(right), RelatedPartyForm)
            added.append(await invited.add_party(visit.call, visit.bank, data))

    outcome = await save_right(content, place.step.fields, add)
    if not added:
        field_errors = {"name.first_name": "First name and last name are needed."} | outcome.field_errors
        return show_new(visit, place, Outcome(field_errors, outcome.problem))
    path = f"people/{added[0]}"
    stored = content_of((await invited.read(visit.bank, visit.invite)).parties[added[0]])
    await keep_rest(visit, place._replace(path=f"{path}/{place.step.key}"), outcome, stored)
    following = visit.base if page.form.get("go") == "overview" else f"{visit.base}/{path}/{visit.person_steps[1].key}"
    return redirect(f"{visit.base}/{path}/{place.step.key}" if outcome.field_errors else following, done="saved")


@get("/onboarding/{invite_id:str}/people/{party_id:str}/{step:str}", opt=PUBLIC)
async def show_person_step(invite_id: str, party_id: str, step: str, page: PageContext) -> PageResponse:
    """Show a step of a person."""
    visit = await visit_of(page, invite_id)
    return await show_step(visit, _place(visit, party_id, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/{party_id:str}/{step:str}", opt=PUBLIC)
async def save_person_step(invite_id: str, party_id: str, step: str, page: PageContext) -> PageResponse:
    """Save a step of a person."""
    visit = await visit_of(page, invite_id)
    return await save_step(visit, _place(visit, party_id, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/{party_id:str}", opt=PUBLIC)
async def remove_person(invite_id: str, party_id: str, page: PageContext) -> PageResponse:
    """Remove a person."""
    visit = await visit_of(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    await invited.remove_party(visit.call, visit.bank, _known(visit, party_id))
    return redirect(visit.base, done="person-removed")


async def _again(visit: Visit, party_id: UUID, content: Content) -> PageResponse:
    """Go on after a form that adds a person and was sent twice; with other words it replaces nothing unseen."""
    place = _place(visit, str(party_id), visit.person_steps[0].key)
    fields = place.step.fields
    if values_of(fields, visit.content(party_id)) == values_of(fields, content):
        return redirect(f"{visit.base}/{place.next_path}")
    return await show_conflict(visit, place)


def _new(visit: Visit) -> Place:
    """Return the step that adds a person. Raises NotFound for who may not add one."""
    if visit.kind != InvitationType.COLLABORATOR:
        raise NotFound("There is no such page.")
    return Place(visit.person_steps[0], None, "people/new", "")


def _place(visit: Visit, party_id: str, key: str) -> Place:
    """Return a step of a person. Raises NotFound, also for another person than who is invited."""
    if visit.kind == InvitationType.AUTHORIZED_PERSON:
        raise NotFound("There is no such page.")
    own_id = _known(visit, party_id)
    return find_place(visit.person_steps, key, f"people/{own_id}", own_id)


def _known(visit: Visit, party_id: str) -> UUID:
    own_id = path_id(party_id)
    if own_id not in visit.view.parties:
        raise NotFound("There is no such person.")
    return own_id
