"""The mailed link, the browser that opened it, and the overview of what to fill in."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from litestar import get, post
from litestar.datastructures import Cookie

from billfold.http.counts import count_address
from billfold.http.raw_request import is_uuid, parse_cookies
from billfold.ledger.bank import Bank
from billfold.onboarding.applications.content import Content, content_of
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.applications.rules.status import EDITABLE
from billfold.onboarding.invites import invited, store
from billfold.onboarding.invites.invited import Draft, InvitedCall, InvitedView, list_drafts
from billfold.onboarding.invites.rules import InvitationType, InviteRow, own_fields
from billfold.platform import ids
from billfold.web.cookies import session_cookie
from billfold.web.onboarding.fields import BUSINESS_STEPS, PERSON_STEPS, Field, Step
from billfold.web.page_context import PUBLIC, PageContext, PageResponse, path_id, redirect

_COOKIE = "__Host-invite-"


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A request of an invited person: the page, the invite, its application, and incomplete input."""

    page: PageContext
    call: InvitedCall
    view: InvitedView
    drafts: dict[str, Draft]

    @property
    def bank(self) -> Bank:
        """The bank."""
        return self.page.server.bank

    @property
    def invite(self) -> InviteRow:
        """The invite."""
        return self.call.invite

    @property
    def kind(self) -> InvitationType:
        """Return the type of the invite."""
        return self.invite.invitation_type

    @property
    def base(self) -> str:
        """Return the base path of this invite's pages."""
        return f"/onboarding/{self.invite.invite_id}"

    @property
    def company(self) -> str:
        """The name of the business."""
        return self.view.form.name or "your business"

    @cached_property
    def business_steps(self) -> tuple[Step, ...]:
        """The pages of the business that the visitor fills in."""
        return BUSINESS_STEPS if self.kind == InvitationType.COLLABORATOR else ()

    @cached_property
    def person_steps(self) -> tuple[Step, ...]:
        """The pages of a person that the visitor fills in, with the requested fields."""
        names = own_fields(self.invite) if self.kind == InvitationType.RELATED_PARTY else None
        return tuple(step for each in PERSON_STEPS if (step := each.of(names)).fields)

    def name_of(self, party_id: UUID) -> str:
        """Return the display name of a person; the form may not ask for that of a related party."""
        party = self.view.parties.get(party_id)
        if party is not None and party.name:
            return party.name.written
        return "Your details" if self.kind == InvitationType.RELATED_PARTY else "Without a name"

    def content(self, party_id: UUID | None) -> Content:
        """Return the stored data of the business, or of a person; empty if there is none."""
        if party_id is None:
            return content_of(self.view.form)
        party = self.view.parties.get(party_id)
        return {} if party is None else content_of(party)

    def render(self, template: str, **facts: Any) -> PageResponse:
        """Return a page of this invite."""
        return self.page.render(template, visit=self, home=self.base, **facts)


async def visit_of(page: PageContext, invite_id: str, *, begins: bool = False) -> Visit | PageResponse:
    """Return the visit of a browser that opened this invite, or the page that explains why there is none.

    Unless it `begins`, the invite must be accepted.
    """
    own_id = path_id(invite_id)
    bank, cookie = page.server.bank, parse_cookies(page.request).get(_COOKIE + str(own_id), "")
    row = await store.find_invite(bank, own_id, cookie, wall=page.now) if cookie else None
    if row is None:
        return gone(page)
    application = await invited.find_application(bank, row)
    if application.status not in EDITABLE:
        return page.render("onboarding_closed", status=200, home="#", status_of_application=application.status)
    if row.accepted_at is None and not begins:
        return redirect(f"/onboarding/{own_id}")
    key = page.form.get("new_key", "")
    call = InvitedCall(
        partner_id=application.partner_id,
        name=invited.name_in_log(row),
        key=UUID(key) if is_uuid(key) else ids.new(),
        fingerprint=b"",
        operation="",
        now=await bank.now(),
        wall=page.now,
        host=page.request.host,
        trace_id=page.request.trace_id,
        address=page.request.client,
        agent=page.user_agent,
        invite=row,
    )
    view = await invited.read(bank, row)
    return Visit(page=page, call=call, view=view, drafts=await list_drafts(bank, row, view.row.applicant_id))


def gone(page: PageContext) -> PageResponse:
    """Return the page for a link that is invalid, or no longer valid."""
    return page.render("onboarding_gone", status=404, home="#")


def invite_cookie(invite_id: UUID, secret: str) -> Cookie:
    """Return the cookie by which a browser that opened an invite is recognized; it ends with the browser."""
    made = session_cookie(secret)
    made.key = _COOKIE + str(invite_id)
    return made


def cookie_of(visit: Visit) -> str:
    """Return the secret of the received cookie."""
    return parse_cookies(visit.page.request)[_COOKIE + str(visit.invite.invite_id)]


class StepState(NamedTuple):
    """A step on the overview: its path, and its missing parts."""

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
    """Exchange the secret of an e-mailed link for a cookie, so that it does not stay in the address."""
    await count_address(page.pool, page.request.client, page.now)
    opened = await store.open_link(page.server.bank, page.link, wall=page.now)
    if opened is None:
        return gone(page)
    row, secret = opened
    return redirect(f"/onboarding/{row.invite_id}", [invite_cookie(row.invite_id, secret)])


@get("/onboarding/{invite_id:str}", opt=PUBLIC)
async def show_overview(invite_id: str, page: PageContext) -> PageResponse:
    """Show the steps to fill in; before acceptance, the invite."""
    visit = await visit_of(page, invite_id, begins=True)
    if not isinstance(visit, Visit):
        return visit
    if visit.invite.accepted_at is None:
        return visit.render("onboarding_welcome", parts_wanted=_parts_wanted(visit))
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
        documents=[
            (
                document_name(each.type),
                visit.company if each.related_party_id is None else visit.name_of(each.related_party_id),
                each.status in UNUSABLE,
            )
            for each in visit.view.documents
        ],
        missing=[each for each in visit.view.missing if each != "agreement_consent"],
        lacking=missing_labels(visit),
    )


def _parts_wanted(visit: Visit) -> list[str]:
    """Return what the visitor fills in, in words: pages, and documents, each once."""
    if visit.kind == InvitationType.AUTHORIZED_PERSON:
        return []
    titles = [each.title for each in visit.business_steps or visit.person_steps]
    if visit.business_steps:
        titles.append("For each owner and manager: " + ", ".join(each.title.lower() for each in visit.person_steps))
    return list(dict.fromkeys([*titles, *(f"{document_name(each.type)}, a file" for each in visit.view.documents)]))


@post("/onboarding/{invite_id:str}/begin", opt=PUBLIC)
async def begin(invite_id: str, page: PageContext) -> PageResponse:
    """Accept the invite. Opening the link does not, because e-mail programs open links too."""
    visit = await visit_of(page, invite_id, begins=True)
    if not isinstance(visit, Visit):
        return visit
    await invited.accept(visit.call, visit.bank)
    return redirect(visit.base)


@post("/onboarding/{invite_id:str}/leave", opt=PUBLIC)
async def leave(invite_id: str, page: PageContext) -> PageResponse:
    """Forget the invite in this browser; the e-mailed link opens it again."""
    visit = await visit_of(page, invite_id, begins=True)
    if isinstance(visit, Visit):
        await store.leave(visit.bank, cookie_of(visit))
    return page.render("onboarding_left", status=200, home="#")


def people_of(visit: Visit) -> list[PersonState]:
    """Return the related parties that are shown, with the missing parts of each."""
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
    """Return in words the missing requirements for submitting the application."""
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
"""Fields without a label: the paths next to them suffice."""


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
