"""Audit entries of what the operator does to users and OAuth clients of customers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.identity.users import store as user_store
from billfold.audit import record as audit_record
from billfold.audit.types import (NewEntry)
from billfold.ledger.types import (Origin)
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.oauth.types import Client
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

_OWNED_CLIENT_ACTIONS = {
    "service_user.created": "program.created",
    "service_user.key_rotated": "program.key_rotated",
    "member.deactivated": "program.revoked",
}
"""What is done to a client that is no member of a team but a company's own, by its other name."""


async def record_member(
    bank: Bank, conn: Connection, customer_id: UUID, *, member_id: UUID, action: str, **details: object
) -> None:
    """Record what was done to a member, in the transaction in which it was."""
    await _record(bank, conn, _entry(customer_id, "member", member_id, action=action, **details))


async def record_user(bank: Bank, conn: Connection, user_id: UUID, *, action: str) -> None:
    """Record what was done to a user in the log of each team they are in."""
    teams = await user_store.list_user_memberships(conn, user_id, only_active=True)
    await _record(bank, conn, *(_entry(each.customer_id, "member", each.member_id, action=action) for each in teams))


async def record_oauth_client(
    bank: Bank, conn: Connection, client: Client | None, *, action: str, **details: object
) -> None:
    """Record what was done to a client that is a member of a team, or a company's own."""
    if client is None:
        return
    if client.customer_id is not None and client.member_id is not None:
        await record_member(bank, conn, client.customer_id, member_id=client.member_id, action=action, **details)
    elif client.owner_id is not None:
        own_action = _OWNED_CLIENT_ACTIONS[action]
        await _record(bank, conn, _entry(client.owner_id, "program", client.client_id, action=own_action, **details))


def _entry(customer_id: UUID, kind: str, resource_id: UUID | str, *, action: str, **details: object) -> NewEntry:
    return NewEntry(
        customer_id=customer_id,
        origin=Origin.operator(),
        action=action,
        resource_type=kind,
        resource_id=resource_id,
        details=details,
    )


async def _record(bank: Bank, conn: Connection, *entries: NewEntry) -> None:
    await audit_record.record_all(conn, bank.vault, entries, now=wall_now())
