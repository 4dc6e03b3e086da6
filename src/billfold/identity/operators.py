"""Operators of the bank: what their roles allow, and the record of what they do in the bank's own audit log.

The log of a customer says that the bank changed something; the bank's log says what was done and by whom.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from uuid import UUID

from billfold.audit.record import record
from billfold.audit.rules import NewEntry, Outcome
from billfold.identity.users.rules import Role
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, Refused


class Power(Enum):
    """A permission of an operator beyond reading."""

    DECIDE = auto()
    """Approve or reject requests that wait for the bank, and confirm what another operator has proposed."""
    PROPOSE = auto()
    """Propose actions that another operator has to confirm."""
    MOVE_MONEY = auto()
    """Propose to move money, such as out of suspense, and reprocess files of the rails."""
    TRADE = auto()
    """Work the trading desk: place, cancel and report orders, keep quotes, pause and resume."""
    RECONCILE = auto()
    """Import statements, own and note breaks, and propose to close them."""


_ALL = frozenset(Power)
POWERS: Mapping[Role, frozenset[Power]] = {
    "ADMIN": _ALL,
    "MANAGER": _ALL,
    "APPROVER": frozenset({Power.DECIDE}),
    "INITIATOR": frozenset({Power.PROPOSE}),
    "VIEWER": frozenset(),
    "SERVICE": frozenset(),
}
"""The permissions of each role of the bank's own team; all roles may read everything."""


_ACCOUNT = re.compile(r".*, account (.+)\Z", re.DOTALL)
_OF_MEMBER = re.compile(r" \(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator of the bank. `name` is unique: two operators have two names.

    `role` is that of a member of the bank's team; None is the command line, whose users may do everything.
    """

    name: str
    origin: Origin
    role: Role | None = None

    @classmethod
    def of_command_line(cls, name: str | None) -> Operator:
        """Return the operator at the command line, by the name in the settings."""
        return cls(name=name or "operator", origin=Origin(kind="OPERATOR", name=name or "operator"))

    @classmethod
    def of_member(cls, origin: Origin, *, user_id: UUID, role: Role) -> Operator:
        """Return a member of the bank's team: `origin` has their name, member id and address."""
        return cls(name=f"{origin.name} ({user_id})", origin=origin, role=role)

    @staticmethod
    def of_account(name: str, account: str) -> str:
        """Return the name of an operator with the system account that distinguishes them."""
        return f"{name}, account {account}"

    @staticmethod
    def user_id_in(name: str) -> UUID | None:
        """Return the owner of an operator's name; None for one of the command line."""
        found = _OF_MEMBER.search(name)
        return None if found is None else UUID(found[1])

    @staticmethod
    def are_same(one: str, other: str) -> bool:
        """Tell whether two names are one operator's, regardless of another name or another case.

        In production the command line is the same operator under every name as long as the system account is the same.
        """
        user_id = Operator.user_id_in(one)
        if user_id is not None or Operator.user_id_in(other) is not None:
            return user_id == Operator.user_id_in(other)
        accounts = [_ACCOUNT.match(each) for each in (one, other)]
        if any(accounts):
            return not all(accounts) or len({each[1] for each in accounts if each}) == 1
        return one.strip().casefold() == other.strip().casefold()

    def may(self, power: Power) -> bool:
        """Tell whether the role includes a power."""
        return self.role is None or power in POWERS[self.role]

    def require(self, power: Power) -> None:
        """Refuse an action that the role does not include. Raises `forbidden`."""
        if not self.may(power):
            raise Refused("forbidden", f"The role {self.role} does not include this.")

    def require_any(self) -> None:
        """Refuse an action that every role includes but one that only reads. Raises `forbidden`."""
        if not any(map(self.may, Power)):
            raise Refused("forbidden", f"The role {self.role} only reads.")


@asynccontextmanager
async def recorded_action(
    bank: Bank, by: Operator, action: str, resource: tuple[str, UUID | str | None], **details: str
) -> AsyncIterator[None]:
    """Record the start of an action that has its own transactions, and its result at the end.

    `action` is `<resource>.<verb>`. A refusal is recorded as FAILURE, and raised. An action that never ends, as
    in a crash, leaves only `<resource>.<verb>_begun`, which says who may have done it.
    """
    await _record(bank, by, f"{action}_begun", resource, outcome="SUCCESS", details=details)
    try:
        yield
    except BillfoldError as failure:
        await _record(bank, by, action, resource, outcome="FAILURE", details={**details, "refused": str(failure)})
        raise
    await _record(bank, by, action, resource, outcome="SUCCESS", details=details)


async def record_reading(bank: Bank, by: Operator, resource: tuple[str, UUID]) -> None:
    """Record that an operator read a page about a customer."""
    await _record(bank, by, f"{resource[0]}.viewed", resource, outcome="SUCCESS", details={})


async def _record(
    bank: Bank,
    by: Operator,
    action: str,
    resource: tuple[str, UUID | str | None],
    *,
    outcome: Outcome,
    details: dict[str, str],
) -> None:
    entry = NewEntry(
        customer_id=bank.own_id,
        origin=by.origin,
        action=action,
        resource_type=resource[0],
        resource_id=resource[1],
        outcome=outcome,
        details=details,
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        await record(conn, bank.vault, entry, now=wall_now())
