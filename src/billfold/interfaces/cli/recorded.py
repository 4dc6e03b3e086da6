"""What the operator does to people and programs, in the audit log of whom it concerns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from billfold.domain import audit, notifications, people
from billfold.domain.audit import Entry, Origin
from billfold.domain.oauth import Client
from billfold.domain.people import Membership, Person

if TYPE_CHECKING:
    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection

CHANGED, ALERT = "TEAM_MEMBER_CHANGED", "SECURITY_ALERT"


async def teams_of(conn: Connection, person: Person) -> list[Membership]:
    """Return the teams a person is in now; to be asked before he is shut out of them."""
    teams = await people.memberships_of(conn, person.user_id)
    return [team for team in teams if team.status == "ACTIVE"]


async def tell_teams(
    conn: Connection,
    vault: Vault,
    teams: list[Membership],
    person: Person,
    *,
    action: str,
    kind: str,
    sentence: str,
    now: datetime,
) -> None:
    """Record something about a person with each of his teams, and tell their administrators."""
    for team in teams:
        await notifications.notify(
            conn, vault, team.customer_id, kind, title=f"{person.name} in your team",
            description=sentence, metadata={"member_id": team.member_id}, now=now,
            informed=person.user_id,
        )  # fmt: skip
    entries = [
        Entry(
            customer_id=team.customer_id,
            origin=Origin.operator(),
            action=action,
            resource_type="member",
            resource_id=team.member_id,
            details={"role": team.role},
        )
        for team in teams
    ]
    await audit.record_all(conn, vault, entries, now=now)


async def record_program(
    conn: Connection,
    vault: Vault,
    program: Client,
    action: str,
    *,
    now: datetime,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record something about a program with the company it is of, if it is a company's."""
    customer_id = program.customer_id or program.owner_id
    if customer_id is None:
        return
    entry = Entry(
        customer_id=customer_id,
        origin=Origin.operator(),
        action=action,
        resource_type="program",
        resource_id=program.client_id,
        details=dict(details or {}),
    )
    await audit.record(conn, vault, entry, now=now)
