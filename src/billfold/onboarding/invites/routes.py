"""Invites to applications: people without an account who fill in, review or submit them."""

from uuid import UUID

from billfold.http.operations import delete, get, post
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.onboarding.applications import requests
from billfold.onboarding.applications.routes.business import READS, V2, WRITES
from billfold.onboarding.invites import invitations
from billfold.onboarding.invites.schemas import Invites, NewInvite, render_invites, wanted_in

_ONE = f"{V2}{{application_id}}/"


@post(
    f"{_ONE}invite/",
    WRITES,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "customer-not-open", "invite-limit-reached"),
)
async def invite_to_application(member: CustomerCaller, bank: Bank, application_id: UUID, data: NewInvite) -> Invites:
    """Invite people to an application.

    Each is mailed a link, which works for seven days, and needs no account: to fill the application in, to review and
    submit it, or to fill in their own data as a related party. Whoever is invited already gets a new link.
    """
    row = await requests.find_own(member, bank, application_id)
    return render_invites(await invitations.invite(member, bank, row, wanted_in(data)))


@get(f"{_ONE}invites/", READS, tag="applications")
async def list_application_invites(member: CustomerCaller, bank: Bank, application_id: UUID) -> Invites:
    """List invites of an application.

    In the order in which they were made.
    """
    application = await requests.read_application(member, bank, application_id)
    return render_invites(await invitations.open_invites(bank.pool, bank, application, now=member.now))


@delete(f"{_ONE}invites/{{invite_id}}/", WRITES, tag="applications")
async def withdraw_application_invite(
    member: CustomerCaller, bank: Bank, application_id: UUID, invite_id: UUID
) -> None:
    """Withdraw an invite.

    Its links open nothing any longer.
    """
    row = await requests.find_own(member, bank, application_id)
    await invitations.withdraw(member, bank, row, invite_id)
