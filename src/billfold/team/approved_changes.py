"""Applies confirmed authorization requests in the name of their requester."""

from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.requests import add_counterparty
from billfold.accounts.counterparties.store import are_sealed, seal_details
from billfold.approvals.authorization_requests import check_requester, open_contacts
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS
from billfold.approvals.types import APPLY_AUTHORIZATION_REQUEST, AuthorizationRequestRow
from billfold.data_keys.keys import DataKeys
from billfold.identity.members import store
from billfold.identity.members.rules import CreateProgram, InviteMember, Member, MemberState
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin, ScheduledJob
from billfold.oauth import clients
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput, InvariantError, NotFound, Refused
from billfold.team import invitations, members, service_users
from billfold.team.administrator import Administrator
from billfold.team.service_users import ServiceUser

Made = TypeVar("Made", Member, ServiceUser)
CALLER: Final = "authorization-request"
"""The caller of the command that applies a change; its key is the request's id."""


async def apply_authorization_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Apply a confirmed change. Applying it twice has no further effect.

    If a rule refuses it now, that is recorded with the request, and it is not tried again.
    """
    now = await bank.now()
    change = await AUTHORIZATION_REQUESTS.get(bank.pool, customer_id, request_id, now=now)
    if change.status == "APPROVED" and change.applied_at is None:
        refused, made = None, None
        try:
            made = await _apply_change(bank, change, now)
        except (Refused, NotFound, InvalidInput) as refusal:
            refused = refusal.code
        reason = {} if refused is None else {"reason": refused}
        await AUTHORIZATION_REQUESTS.update_by_bank(
            bank,
            customer_id,
            request_id,
            verb="applied" if refused is None else "rejected",
            where="status = 'APPROVED' AND applied_at IS NULL",
            details={"change": change.action, **reason},
            applied_at=now,
            updated_at=now,
            refused=refused,
            resource_id=made or change.resource_id,
        )
    await scheduler.cancel(bank.pool, APPLY_AUTHORIZATION_REQUEST, request_id)


async def run_apply_job(bank: Bank, appointment: ScheduledJob) -> None:
    """Run the job of a confirmed change."""
    assert appointment.customer_id is not None
    await apply_authorization_request(bank, appointment.customer_id, appointment.object_id)


async def _apply_change(bank: Bank, change: AuthorizationRequestRow, now: datetime) -> UUID | None:
    """Apply a change; return the id of what was created, if anything."""
    content: dict[str, Any] = msgspec.json.decode(open_contacts(bank.vault, change).content)["change"]
    by = await _administrator(bank, change, content["scopes"], now=now)
    if change.action == "counterparty.create":
        counterparty = await _sealed(bank, change, content["counterparty"])
        return await add_counterparty(bank, _counterparty_command(change, counterparty, by.origin))
    if change.action == "member.invite":
        return await _invite(by, change.request_id, msgspec.convert(content["invited"], InviteMember))
    if change.action == "service_user.create":
        return await _create_service_user(
            by, change.request_id, msgspec.convert(content["service_user"], CreateProgram)
        )
    assert change.resource_id is not None
    await _change_member(by, change.action, change.resource_id, content)
    return None


async def _invite(by: Administrator, member_id: UUID, wanted: InviteMember) -> UUID:
    """Invite under the id of the request. Another process may have done so and died before recording it."""
    try:
        return (await store.get_member(by.pool, by.vault, by.customer_id, member_id=member_id, now=by.now)).member_id
    except NotFound:
        return _require_made(await invitations.invite(by, wanted, member_id=member_id)).member_id


async def _create_service_user(by: Administrator, request_id: UUID, wanted: CreateProgram) -> UUID | None:
    """Create a service user as the client of the request's id, unless a process has done it before."""
    client_id = request_id.hex
    client = await clients.find_client(by.pool, client_id)
    if client is None:
        client = _require_made(await service_users.create_service_user(by, wanted, client_id=client_id)).client
    return client.member_id


async def _change_member(by: Administrator, action: str, member_id: UUID, content: dict[str, Any]) -> None:
    match action:
        case "member.update":
            before = msgspec.convert(content.get("before"), MemberState | None)
            await members.change_member(by, member_id, role=content["role"], status=content["status"], before=before)
        case "member.reinvite":
            await invitations.resend_invitation(by, member_id, role=content["role"])
        case "service_user.add_key":
            key, replaces = content["public_key"], content["replaces"]
            try:
                await service_users.add_service_user_key(by, member_id, key, replaces=replaces)
            except Refused as refusal:
                if refusal.code != "duplicate-id":
                    raise
        case _:
            raise InvariantError(f"{action!r} is not a team change")


def _require_made(result: Made | AuthorizationRequestRow) -> Made:
    """Return the result of an approved change, which must not be requested a second time."""
    if isinstance(result, AuthorizationRequestRow):
        raise InvariantError("an approved change was requested again")
    return result


async def _sealed(bank: Bank, change: AuthorizationRequestRow, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with the counterparty's details sealed, even if an earlier release stored the request."""
    if are_sealed(fields["type"], fields["details"]):
        return fields
    data_key = await bank.ports[DataKeys].of(bank.pool, change.customer_id)
    return fields | {"details": seal_details(data_key, fields["type"], fields["details"])}


def _counterparty_command(
    change: AuthorizationRequestRow, change_fields: dict[str, Any], origin: Origin
) -> AddCounterparty:
    who = {"caller": CALLER, "key": change.request_id, "customers": (change.customer_id,)}
    return msgspec.structs.replace(msgspec.convert({**change_fields, **who}, AddCounterparty), origin=origin)


async def _administrator(
    bank: Bank, change: AuthorizationRequestRow, scopes: list[str] | None, now: datetime
) -> Administrator:
    """Return the requester as they are now, with the scopes of the request. Raises NotFound, Refused `forbidden`."""
    customer = await find_customer(bank.pool, change.customer_id)
    if customer is None:
        raise NotFound
    needs = "counterparties.write" if change.action == "counterparty.create" else "team.write"
    requester = await check_requester(bank.pool, bank.vault, change, needs=needs, now=now)
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=change.customer_id,
        customer_name=customer.name,
        member_id=change.member_id,
        user_id=change.user_id,
        client_id=change.client_id,
        role=requester.role,
        scopes=None if scopes is None else frozenset(scopes),
        name=requester.name,
        origin=Origin(
            kind="CLIENT" if change.user_id is None else "MEMBER",
            member_id=change.member_id,
            client_id=change.client_id or None,
        ),
        pages=bank.settings.auth_origin,
        limits=bank.settings.limits,
        now=now,
        business_date=bank.calendars.business_date(now),
        wall=wall_now(),
        is_approved=True,
    )
