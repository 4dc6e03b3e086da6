"""Confirmed authorization requests are applied in the name of their requester."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from billfold.access.team import invitations as team_invitations
from billfold.access.team import members as team_members
from billfold.access.team import store as team_store
from billfold.access.team.administrator import Administrator
from billfold.access.team.types import InviteMember
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS
from billfold.approvals.types import APPLY_AUTHORIZATION_REQUEST, AuthorizationRequestRow
from billfold.audit.types import Origin
from billfold.ledger.directory.store import find_customer
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.types import ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

CALLER: Final = "authorization-request"
"""Who gives the command by which a change is made; its key is the request's id."""
_DONE_BEFORE = "member-already-invited"
"""The refusal of a second invitation: a process sent the first and died before it recorded it."""


async def apply_authorization_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Apply a confirmed change. Doing it twice changes nothing the second time.

    A rule that refuses it now is recorded with the request: it is not tried again.
    """
    now = await bank.now()
    change = await AUTHORIZATION_REQUESTS.get(bank.pool, customer_id, request_id, now=now)
    if change.status == "APPROVED" and change.applied_at is None:
        refused, made = None, None
        try:
            made = await _make(bank, change, now)
        except (Refused, NotFound, InvalidInput) as refusal:
            refused = None if refusal.code == _DONE_BEFORE else refusal.code
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
    await jobs_store.cancel(bank.pool, APPLY_AUTHORIZATION_REQUEST, request_id)


async def run_apply_job(bank: Bank, appointment: ScheduledJob) -> None:
    """Run the job of a confirmed change."""
    assert appointment.customer_id is not None
    await apply_authorization_request(bank, appointment.customer_id, appointment.object_id)


async def _make(bank: Bank, change: AuthorizationRequestRow, now: datetime) -> UUID | None:
    """Apply a change; return the id of what was created, if anything."""
    change_fields: dict[str, Any] = msgspec.json.decode(change.content)["change"]
    by = await _administrator(bank, change, change_fields["scopes"], now=now)
    if change.action == "counterparty.create":
        answer = await bank.engine.submit(_link(change, change_fields["counterparty"], by.origin))
        return UUID(answer.outcome["counterparty_id"])
    if change.action == "member.update":
        assert change.resource_id is not None
        await team_members.change_member(
            by, change.resource_id, role=change_fields["role"], status=change_fields["status"]
        )
        return None
    return (await team_invitations.invite(by, msgspec.convert(change_fields["invited"], InviteMember))).member_id


def _link(change: AuthorizationRequestRow, change_fields: dict[str, Any], origin: Origin) -> AddCounterparty:
    who = {"caller": CALLER, "key": change.request_id, "customers": (change.customer_id,)}
    return msgspec.structs.replace(msgspec.convert({**change_fields, **who}, AddCounterparty), origin=origin)


async def _administrator(
    bank: Bank, change: AuthorizationRequestRow, scopes: list[str] | None, now: datetime
) -> Administrator:
    """Return the requester as an administrator of the team. Raises NotFound when they left."""
    customer = await find_customer(bank.pool, change.customer_id)
    if customer is None:
        raise NotFound
    requester = await team_store.get_member(bank.pool, change.customer_id, change.member_id, now=now)
    if requester.status != "ACTIVE":
        raise Refused("forbidden", "The requester of the change has left the team.")
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=change.customer_id,
        customer_name=customer.name,
        name=requester.name,
        origin=Origin(
            kind="CLIENT" if change.user_id is None else "MEMBER",
            member_id=change.member_id,
            client_id=change.client_id,
        ),
        scopes=None if scopes is None else frozenset(scopes),
        pages=bank.settings.auth_origin,
        now=now,
        wall=wall_now(),
    )
