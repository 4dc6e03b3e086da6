"""The page of an authorized person: the whole application, the agreements, and the submission."""

from typing import Any, NamedTuple

from litestar import get, post

from billfold.onboarding.agreements.routes import read_agreement
from billfold.onboarding.applications.content import content_of
from billfold.onboarding.invites import invited
from billfold.onboarding.invites.invited import InvitedView, mark_of, unless_changed, view_of
from billfold.onboarding.invites.rules import InvitationType
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.web.onboarding.fields import BUSINESS_STEPS, PERSON_STEPS, shown_of
from billfold.web.onboarding.visit import Visit, document_name, missing_labels, visit_of
from billfold.web.page_context import PUBLIC, FormError, PageContext, PageResponse, redirect

_SHOWN_AGAIN = frozenset({"content-changed", "application-incomplete", "usage-limit-reached"})


class Section(NamedTuple):
    """A part of the application for review: its title, and labels with stored values."""

    title: str
    facts: dict[str, str]


@get("/onboarding/{invite_id:str}/review", opt=PUBLIC)
async def show_review(invite_id: str, page: PageContext) -> PageResponse:
    """Show the whole application, and the form that submits it."""
    visit = await _visit(page, invite_id)
    return await _page(visit) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/review", opt=PUBLIC)
async def submit(invite_id: str, page: PageContext) -> PageResponse:
    """Accept the agreements and submit the application as it was shown."""
    visit = await _visit(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    if page.form.get("accept") != "yes":
        return await _page(visit, InvalidInput.at("accept", msg="must be accepted"))

    invite, bank = visit.invite, visit.bank
    check = unless_changed(bank, page.form.get("mark", ""), lambda found: _marked(view_of(found, invite, bank.seed)))
    try:
        await invited.submit(visit.call, bank, version=page.form.get("version", ""), check=check)
    except Refused as refused:
        if refused.code == "application-not-editable":
            return redirect(visit.base)
        if refused.code not in _SHOWN_AGAIN:
            raise
        visit = await _visit(page, invite_id)
        return await _page(visit, refused) if isinstance(visit, Visit) else visit
    return redirect(visit.base)


async def _visit(page: PageContext, invite_id: str) -> Visit | PageResponse:
    visit = await visit_of(page, invite_id)
    if isinstance(visit, Visit) and visit.kind != InvitationType.AUTHORIZED_PERSON:
        raise NotFound("There is no such page.")
    return visit


async def _page(visit: Visit, wrong: FormError = "") -> PageResponse:
    view, agreement = visit.view, await read_agreement(visit.bank, visit.call.now)
    status = 409 if isinstance(wrong, Refused) and wrong.code == "content-changed" else None
    if status is not None:
        wrong = "The application was changed while you read it. Read it again below, then submit it."
    return visit.render(
        "onboarding_review",
        wrong=wrong,
        status=status,
        sections=[Section(each.title, shown_of(each.fields, content_of(view.form))) for each in BUSINESS_STEPS],
        people=[
            Section(
                visit.name_of(party_id),
                {
                    label: text
                    for step in PERSON_STEPS
                    for label, text in shown_of(step.fields, content_of(party)).items()
                },
            )
            for party_id, party in view.parties.items()
        ],
        documents=[(document_name(each.type), each.status, each.name) for each in view.documents],
        lacking=missing_labels(visit),
        agreement=agreement,
        mark=mark_of(visit.bank, _marked(view)),
    )


def _marked(view: InvitedView) -> dict[str, Any]:
    """Return everything that the page shows of an application."""
    form = content_of(view.form)
    return {
        "form": {name: value for name, value in form.items() if name != "agreement_consent"},
        "parties": {str(each): content_of(party) for each, party in view.parties.items()},
        "documents": {str(each.document_id): [each.status, each.name] for each in view.documents},
    }
