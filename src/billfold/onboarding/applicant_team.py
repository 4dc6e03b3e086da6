"""Team members who are invited when their company's application is approved, and dropped if it is not."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.identity.members import store as member_store
from billfold.identity.members.rules import InviteMember, Member
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.oauth.caller import CustomerCaller
from billfold.onboarding.applications import store
from billfold.onboarding.applications.changes import application_change
from billfold.onboarding.applications.content import name_of, open_application
from billfold.onboarding.applications.types import ApplicationRow, ApplicationStatus, AwaitedMemberRow
from billfold.platform.clock import wall_now
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Db
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.ids import command_id, derive
from billfold.team import invitations
from billfold.team.administrator import Administrator

AWAITED_MAX: Final = 50


async def await_team(
    member: CustomerCaller, bank: Bank, row: ApplicationRow, wanted: Sequence[InviteMember]
) -> list[Member] | None:
    """Register members to be invited on approval; return all of them. None if the application is approved by now.

    `wanted` is checked. Raises InvalidInput, Refused `member-already-invited`, `application-not-approved`.
    """
    async with application_change(
        bank, row, "team_awaited", origin=member.origin, at=member.now, wall=member.wall
    ) as change:
        if change.row.status == ApplicationStatus.APPROVED:
            change.action.skip()
            return None
        require_submitted(change.row)
        known = await list_awaited(change.action.conn, bank, change.row)
        if len(known) + len(wanted) > AWAITED_MAX:
            raise InvalidInput.at("body", msg=f"At most {AWAITED_MAX} members are invited with an approval")
        if {each.email for each in known} & {each.email for each in wanted}:
            raise Refused("member-already-invited", "One of them is already to be invited on approval.")
        command = command_id(f"team:{member.key_owner}", member.key)
        for number, each in enumerate(wanted):
            member_id = derive(bank.seed, command, number)
            content = await bank.ports[DataKeys].seal(
                change.action.conn, row.applicant_id, msgspec.json.encode(each), aad=_place(row, member_id)
            )
            await store.add_awaited_member(
                change.action,
                AwaitedMemberRow(
                    customer_id=row.customer_id,
                    application_id=row.application_id,
                    member_id=member_id,
                    content=content,
                    created_at=change.at,
                ),
            )
        return await list_awaited(change.action.conn, bank, change.row)


async def list_awaited(conn: Db, bank: Bank, row: ApplicationRow) -> list[Member]:
    """Return the members to be invited on approval, in the order in which they were named."""
    found = []
    for each in await store.list_awaited_members(conn, row):
        place = _place(row, each.member_id)
        content = await bank.ports[DataKeys].open(conn, row.applicant_id, each.content, aad=place)
        wanted = msgspec.json.decode(content, type=InviteMember)
        found.append(
            Member(
                member_id=each.member_id,
                user_id=None,
                client_id=None,
                status="PENDING",
                scopes=None,
                created_at=each.created_at,
                last_login_at=None,
                invite_expires_at=None,
                **msgspec.structs.asdict(wanted),
            )
        )
    return found


async def run_team_job(bank: Bank, job: ScheduledJob) -> None:
    """Invite the waiting members of an approved company, in the name of its administrator, and clear the list."""
    row = await store.find_by_applicant(bank.pool, job.object_id)
    if row is None or row.status != ApplicationStatus.APPROVED:
        return
    by = await _administrator(bank, row)
    for each in await list_awaited(bank.pool, bank, row) if by is not None else ():
        assert by is not None
        wanted = InviteMember(**{name: getattr(each, name) for name in InviteMember.__struct_fields__})
        try:
            await invitations.invite(by, wanted, member_id=each.member_id)
        except Refused as refused:
            if refused.code != "member-already-invited":
                raise
    now = await bank.now()
    async with application_change(bank, row, "team_invited", origin=Origin.system(), at=now, wall=wall_now()) as change:
        if not await store.drop_awaited_members(change.action, change.row):
            change.action.skip()


def require_submitted(row: ApplicationRow) -> None:
    """Refuses: application-not-approved."""
    if row.status != ApplicationStatus.SUBMITTED:
        raise Refused("application-not-approved", f"The application is {row.status}.")


async def _administrator(bank: Bank, row: ApplicationRow) -> Administrator | None:
    """Return the administrator who invites the team: the submitter, if they still administer the new company.

    If no member submitted the application, the company invites, through its first administrator.
    """
    now, company = await bank.now(), name_of(await open_application(bank.pool, bank, row))
    team = await member_store.list_team(bank.pool, bank.vault, row.applicant_id, now=now)
    leading = [each for each in team if each.role == "ADMIN" and each.status == "ACTIVE" and each.user_id is not None]
    own = next((each for each in leading if row.submitted_by in {None, each.user_id}), None)
    if own is None:
        return None
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=row.applicant_id,
        customer_name=company,
        member_id=own.member_id,
        user_id=own.user_id,
        client_id="",
        role=own.role,
        scopes=None,
        name=company if row.submitted_by is None else own.name,
        origin=Origin.system(),
        pages=bank.settings.auth_origin,
        limits=bank.settings.limits,
        now=now,
        business_date=bank.calendars.business_date(now),
        wall=wall_now(),
    )


def _place(row: ApplicationRow, member_id: UUID) -> bytes:
    return associated_data("awaited_team_member", "content", member_id, tenant_id=row.applicant_id)
