"""The team of a company that applies or has become a customer."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

import msgspec

from billfold.http.operations import post
from billfold.identity.members import store
from billfold.identity.members.rules import InviteMember, check_invited
from billfold.identity.users.store import list_user_memberships
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.onboarding.applicant_team import await_team, require_submitted
from billfold.onboarding.applications import content, requests
from billfold.onboarding.applications.routes import V2, WRITES
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus
from billfold.platform.errors import FieldError, InvalidInput, Refused
from billfold.team import invitations
from billfold.team.administrator import Administrator, calling_administrator
from billfold.team.schemas import Team, render_team

Invited = Annotated[list[InviteMember], msgspec.Meta(min_length=1, max_length=50)]


@post(
    f"{V2}{{application_id}}/team/",
    WRITES,
    tag="applications",
    refuses=("application-not-approved", "member-already-invited", "forbidden"),
)
async def create_application_team(member: CustomerCaller, bank: Bank, application_id: UUID, data: Invited) -> Team:
    """Invite the team of a company that applies.

    While the application is SUBMITTED they wait, and are mailed a link when it is approved, but not if it is
    rejected. Once it is APPROVED each is mailed a link at once. The member who submitted the application may do this,
    and after the approval any administrator of the new company.
    """
    row = await requests.find_own(member, bank, application_id)
    invited = _normalize_invited(data)
    if row.status != ApplicationStatus.APPROVED:
        require_submitted(row)
        if row.submitted_by not in {None, member.access.user_id}:
            raise Refused("forbidden", "Only the submitter of the application can invite the team of its company.")
        awaited = await await_team(member, bank, row, invited)
        if awaited is not None:
            return render_team(row.applicant_id, awaited, private_of=lambda _: True)
        row = await requests.find_own(member, bank, application_id)
    by = await _administrator(member, bank, row)
    for each in invited:
        await invitations.invite(by, each)
    found = await store.list_team(bank.pool, bank.vault, row.applicant_id, now=member.now)
    return render_team(row.applicant_id, found, private_of=lambda _: True)


def _normalize_invited(invited: list[InviteMember]) -> list[InviteMember]:
    """Return them with normalized addresses. Raises InvalidInput for one who cannot be invited or is there twice."""
    found: dict[str, InviteMember] = {}
    for index, each in enumerate(invited):
        try:
            checked = check_invited(each)
        except InvalidInput as wrong:
            raise InvalidInput(FieldError(("body", index, *e.loc), e.msg, e.type) for e in wrong.errors) from None
        if checked.email in found:
            raise InvalidInput.at("body", index, "email", msg="is there twice")
        found[checked.email] = checked
    return [*found.values()]


async def _administrator(member: CustomerCaller, bank: Bank, row: ApplicationRow) -> Administrator:
    """Return the caller as an administrator of the new company. Raises Refused `forbidden`."""
    user_id = member.access.user_id
    teams = [] if user_id is None else await list_user_memberships(bank.pool, user_id, only_active=True)
    if not any(each.customer_id == row.applicant_id and each.role == "ADMIN" for each in teams):
        raise Refused("forbidden", "Only an administrator of the new company can invite its team.")
    company = await content.open_application(bank.pool, bank, row)
    by = await calling_administrator(member, bank)
    return replace(by, customer_id=row.applicant_id, customer_name=content.name_of(company))
