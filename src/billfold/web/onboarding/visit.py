"""Who comes to these pages: a browser that opened the link of an invite, and what it is shown."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from litestar.datastructures import Cookie

from billfold.http.raw_request import is_uuid, parse_cookies
from billfold.ledger.bank import Bank
from billfold.onboarding.applications.content import Content, content_of
from billfold.onboarding.applications.rules.status import EDITABLE
from billfold.onboarding.invites import invited
from billfold.onboarding.invites import store as invite_store
from billfold.onboarding.invites.invited import Draft, InvitedCall, InvitedView, list_drafts
from billfold.onboarding.invites.rules import InvitationType, InviteRow, own_fields
from billfold.pages.theme import session_cookie
from billfold.platform import ids
from billfold.web.onboarding.steps import BUSINESS_STEPS, PERSON_STEPS, Step
from billfold.web.page_context import PageContext, PageResponse, path_id, redirect

_COOKIE = "__Host-invite-"


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A request of an invited person: the page, the invite, what it shows, and what is typed and not complete."""

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
        """What they are invited for."""
        return self.invite.invitation_type

    @property
    def base(self) -> str:
        """Where the pages of this invite are."""
        return f"/onboarding/{self.invite.invite_id}"

    @property
    def company(self) -> str:
        """The name of the business."""
        return self.view.form.name or "your business"

    @cached_property
    def business_steps(self) -> tuple[Step, ...]:
        """The pages of the business that are filled in here."""
        return BUSINESS_STEPS if self.kind == InvitationType.COLLABORATOR else ()

    @cached_property
    def person_steps(self) -> tuple[Step, ...]:
        """The pages of a person that are filled in here, with the fields that are asked for."""
        names = own_fields(self.invite) if self.kind == InvitationType.RELATED_PARTY else None
        return tuple(step for each in PERSON_STEPS if (step := each.of(names)).fields)

    def name_of(self, party_id: UUID) -> str:
        """Return the name of a person as it is shown; of a related party it may not be asked for."""
        party = self.view.parties.get(party_id)
        if party is not None and party.name:
            return party.name.written
        return "Your details" if self.kind == InvitationType.RELATED_PARTY else "Without a name"

    def content(self, party_id: UUID | None) -> Content:
        """Return what is stored of the business, or of a person; what is not there is empty."""
        if party_id is None:
            return content_of(self.view.form)
        party = self.view.parties.get(party_id)
        return {} if party is None else content_of(party)

    def render(self, template: str, **facts: Any) -> PageResponse:
        """Return a page of this invite."""
        return self.page.render(template, visit=self, home=self.base, **facts)


async def visit_of(page: PageContext, invite_id: str, *, begins: bool = False) -> Visit | PageResponse:
    """Return the visit of a browser that opened this invite, or the page that says why there is none.

    Unless it `begins`, the invite must be accepted.
    """
    own_id = path_id(invite_id)
    bank, cookie = page.server.bank, parse_cookies(page.request).get(_COOKIE + str(own_id), "")
    row = await invite_store.find_invite(bank, own_id, cookie, wall=page.now) if cookie else None
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
    """Return the page that says that a link opens nothing, or no longer."""
    return page.render("onboarding_gone", status=404, home="#")


def invite_cookie(invite_id: UUID, secret: str) -> Cookie:
    """Return the cookie by which a browser is known that opened an invite; it goes with the browser."""
    made = session_cookie(secret)
    made.key = _COOKIE + str(invite_id)
    return made


def cookie_of(visit: Visit) -> str:
    """Return the secret of the cookie that came."""
    return parse_cookies(visit.page.request)[_COOKIE + str(visit.invite.invite_id)]
