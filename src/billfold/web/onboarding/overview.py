"""The mailed link is opened; what there is to fill in, and what is missing; leaving."""

from typing import NamedTuple
from uuid import UUID

from litestar import get, post

from billfold.http.counts import count_address
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.invites import invited, sessions
from billfold.onboarding.invites.types import InvitationType
from billfold.web.onboarding.steps import BUSINESS_STEPS, PERSON_STEPS, Field, Step
from billfold.web.onboarding.visit import Visit, cookie_of, gone, invite_cookie, visit_of
from billfold.web.page_context import PUBLIC, PageContext, PageResponse, redirect


class StepState(NamedTuple):
    """A step on the overview: where it is, and what is missing in it."""

    title: str
    path: str
    missing: int
    is_incomplete: bool


class PersonState(NamedTuple):
    """A related party on the overview: their id, their name and their steps."""

    party_id: UUID
    name: str
    steps: list[StepState]


@get("/onboarding", opt=PUBLIC)
async def open_link(page: PageContext) -> PageResponse:
    """Exchange the secret of a mailed link for a cookie, so that it does not stay in the address."""
    await count_address(page.pool, page.request.client, page.now)
    opened = await sessions.open_link(page.server.bank, page.link, wall=page.now)
    if opened is None:
        return gone(page)
    row, secret = opened
    return redirect(f"/onboarding/{row.invite_id}", [invite_cookie(row.invite_id, secret)])


@get("/onboarding/{invite_id:str}", opt=PUBLIC)
async def show_overview(invite_id: str, page: PageContext) -> PageResponse:
    """Show what there is to fill in; before that, what the person is invited to."""
    visit = await visit_of(page, invite_id, begins=True)
    if not isinstance(visit, Visit):
        return visit
    if visit.invite.accepted_at is None:
        return visit.render("onboarding_welcome")
    if visit.kind == InvitationType.AUTHORIZED_PERSON:
        return redirect(f"{visit.base}/review")
    own = visit.kind == InvitationType.RELATED_PARTY
    waiting = sum(each.status in UNUSABLE for each in visit.view.documents)
    return visit.render(
        "onboarding_overview",
        steps=[_state(visit, each, f"business/{each.key}") for each in visit.business_steps],
        people=people_of(visit),
        own=own,
        documents_waiting=waiting,
        missing=[each for each in visit.view.missing if each != "agreement_consent"],
    )


@post("/onboarding/{invite_id:str}/begin", opt=PUBLIC)
async def begin(invite_id: str, page: PageContext) -> PageResponse:
    """Accept the invite. Opening the link does not do it: mail programs open links too."""
    visit = await visit_of(page, invite_id, begins=True)
    if not isinstance(visit, Visit):
        return visit
    await invited.accept(visit.call, visit.bank)
    return redirect(visit.base)


@post("/onboarding/{invite_id:str}/leave", opt=PUBLIC)
async def leave(invite_id: str, page: PageContext) -> PageResponse:
    """Forget the invite in this browser; the mailed link opens it again."""
    visit = await visit_of(page, invite_id, begins=True)
    if isinstance(visit, Visit):
        await sessions.leave(visit.bank, cookie_of(visit))
    return page.render("onboarding_left", status=200, home="#")


def people_of(visit: Visit) -> list[PersonState]:
    """Return the related parties that are shown, with what is missing of each."""
    return [
        PersonState(
            party_id,
            visit.name_of(party_id),
            [
                _state(visit, each, f"people/{party_id}/{each.key}", prefix=f"related_parties.{party_id}.")
                for each in visit.person_steps
            ],
        )
        for party_id in visit.view.parties
    ]


def missing_labels(visit: Visit) -> list[str]:
    """Return in words what is missing before the application can be submitted."""
    names = {f"related_parties.{each.party_id}.": each.name for each in people_of(visit)}
    found = []
    for path in visit.view.missing:
        whose = next((prefix for prefix in names if path.startswith(prefix)), "")
        fields = [each for step in (PERSON_STEPS if whose else BUSINESS_STEPS) for each in step.fields]
        what = _label_of(path.removeprefix(whose), fields)
        what = "Identification number" if whose and what == "Tax number" else what
        if what:
            found.append(f"{names[whose]}: {what}" if whose else what)
    return found


_WORDS = {
    "address": "Address",
    "contact": "Contact",
    "contact.name": "Name of the contact",
    "identification_number": "Tax number",
    "industry": "Industry",
    "name": "Name",
    "related_parties.AUTHORIZED_REPRESENTATIVE": "Somebody who may act for the business",
    "related_parties.CONTROL_PERSON": "Somebody who controls the business",
    "risk_info": "Activity and money",
    "roles": "Role",
}
_UNSAID = frozenset({"agreement_consent", "documents", "related_parties"})
"""What the paths beside them say."""


def _label_of(path: str, fields: list[Field]) -> str:
    if path in _UNSAID:
        return ""
    if path.startswith("documents."):
        return document_name(path.removeprefix("documents."))
    return _WORDS.get(path) or next((each.label for each in fields if each.path == path), path)


def document_name(kind: str) -> str:
    """Return the type of a document in words."""
    words = kind.replace("_", " ").lower()
    for short in ("ein", "id", "bsa", "aml", "ofac"):
        words = " ".join(each.upper() if each == short else each for each in words.split())
    return words[:1].upper() + words[1:]


def _state(visit: Visit, step: Step, path: str, prefix: str = "") -> StepState:
    lacking = [each.removeprefix(prefix) for each in visit.view.missing if each.startswith(prefix)]
    missing = sum(any(_is_of(each.path, path_of) for each in step.fields) for path_of in lacking)
    return StepState(step.title, f"{visit.base}/{path}", missing, path in visit.drafts)


def _is_of(path: str, missing: str) -> bool:
    return path == missing or path.startswith(f"{missing}.")
