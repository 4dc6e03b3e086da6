"""Which commands leave an entry in the audit log, and what it says of them.

Only commands that somebody asked for in person (`origin`) do. What is not in the table, a payment
or a day that ends, is proven by its own row and the chain of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.domain import audit, notifications
from billfold.domain.audit import Entry
from billfold.flows.adjust import AdjustPocket, CorrectBooking, GiveCredit
from billfold.flows.counterparties import AddCounterparty, UpdateCounterparty
from billfold.flows.customers import CloseCustomer, UpdateCustomer
from billfold.flows.enrol import EnrolCustomer
from billfold.flows.pay_back_wire import PayBackWire
from billfold.flows.pockets import OpenPocket, SetPocketState, UpdatePocket
from billfold.flows.portals import OpenPortal, UpdatePortal
from billfold.flows.receive_ach import GiveBackAch
from billfold.flows.reverse_ach import RetryAch, ReverseAch
from billfold.flows.review_ach import ReviewAch
from billfold.flows.suspense import AssignFromSuspense, ReturnFromSuspense
from billfold.flows.transfer_bills import DeliverBills, ReceiveBills
from billfold.flows.verify_counterparty import ConfirmDeposits, DecideVerification
from billfold.kit.clock import wall_now

if TYPE_CHECKING:
    from billfold.engine.job import Job
    from billfold.flows.command import Command
    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection


class Told(NamedTuple):
    """What an entry says of a command: `told` are the fields of the command it names."""

    resource: str
    verb: str | Callable[[Any], str]
    told: tuple[str, ...] = ()

    def action_of(self, command: Command) -> str:
        """Return the action: the verb may hang on what the command asks for."""
        verb = self.verb if isinstance(self.verb, str) else self.verb(command)
        return f"{self.resource}.{verb}"


_STRATEGIES = ("deposit_weeks", "reinvestment_weeks")
AUDITED: dict[type[Command], Told] = {
    GiveBackAch: Told("ach", "given_back", ("code",)),
    RetryAch: Told("ach", "sent_again"),
    ReverseAch: Told("ach", "reversed"),
    ReviewAch: Told("ach", lambda c: c.decision.lower(), ("reason",)),
    AddCounterparty: Told(
        "counterparty", "created", ("type", "display_name", "verification", "target_pocket_id")
    ),
    ConfirmDeposits: Told("counterparty", "deposits_named"),
    AdjustPocket: Told("pocket", "adjusted", ("direction", "amount", "description")),
    DeliverBills: Told("pocket", "delivered", ("cusip", "units", "counterparty_name")),
    ReceiveBills: Told("pocket", "received", ("cusip", "units", "counterparty_name")),
    CorrectBooking: Told("activity", "corrected", ("description",)),
    GiveCredit: Told("pocket", "credited", ("amount", "credit_type", "description")),
    AssignFromSuspense: Told("suspense", "assigned", ("item_id", "portal_id")),
    ReturnFromSuspense: Told("suspense", "returned", ("item_id", "reason")),
    CloseCustomer: Told("customer", "closed", ("reason",)),
    DecideVerification: Told("counterparty", "reviewed", ("approved", "reason")),
    EnrolCustomer: Told("customer", "created", ("role", "type", "name")),
    OpenPocket: Told("pocket", "created", ("name", *_STRATEGIES)),
    OpenPortal: Told("portal", "created", ("pocket_id", "name", "payment_rails")),
    PayBackWire: Told("wire", "returned", ("original_id", "code")),
    SetPocketState: Told("pocket", "updated", ("status", "real_time_yield")),
    UpdateCounterparty: Told(
        "counterparty", lambda c: "unlinked" if c.unlink else "updated", ("display_name",)
    ),
    UpdateCustomer: Told("customer", "updated"),
    UpdatePocket: Told(
        "pocket", lambda c: "closed" if c.close_for else "updated",
        ("name", *_STRATEGIES, "close_for"),
    ),
    UpdatePortal: Told(
        "portal", lambda c: "closed" if c.close else "updated", ("pocket_id", "name")
    ),
}  # fmt: skip
"""Command -> what its entry says. Whoever makes a command that people give adds its line."""


async def record_deeds(conn: Connection, vault: Vault | None, batch: Sequence[Job]) -> None:
    """Record what people asked for in this batch, in its transaction."""
    if vault is None:
        return
    for job in batch:
        if job.outcome is not None and "counterparties" in job.outcome:
            await _tell(conn, vault, job.customers[0], job.outcome["counterparties"])
    entries = [entry for job in batch if (entry := entry_of(job)) is not None]
    if entries:
        await audit.record_all(conn, vault, entries, now=wall_now())


def _asked_for(command: Command, told: Told) -> dict[str, Any]:
    asked = {name: getattr(command, name) for name in told.told}
    details = {name: value for name, value in asked.items() if value is not None}
    if isinstance(command, UpdatePocket) and not command.keep_reinvestment:
        details["reinvestment_weeks"] = command.reinvestment_weeks  # None: what matures stays cash
    return details


async def _tell(
    conn: Connection, vault: Vault, customer_id: UUID, changed: Sequence[Mapping[str, str]]
) -> None:
    """Tell the team of counterparties that stand somewhere else now, whoever has caused it."""
    for each in changed:
        await notifications.notify(
            conn, vault, customer_id, "COUNTERPARTY_STATUS_CHANGED",
            title="A counterparty changed", description=each["said"],
            metadata={"counterparty_id": each["counterparty_id"]}, now=wall_now(),
        )  # fmt: skip


def entry_of(job: Job) -> Entry | None:
    """Return what to record of a command that was decided just now; None for most."""
    command, outcome = job.command, job.outcome
    told = None if command.origin is None or outcome is None else AUDITED.get(type(command))
    if told is None or command.origin is None or outcome is None:
        return None
    details = _asked_for(command, told)
    refused = outcome.get("refused")
    if refused is not None:
        details["refused"] = refused
    named = f"{told.resource}_id"
    itself = job.customers[0] if told.resource == "customer" else None
    return Entry(
        customer_id=job.customers[0],
        origin=command.origin,
        action=told.action_of(command),
        resource_type=told.resource,
        resource_id=outcome.get(named) or getattr(command, named, itself),
        outcome="SUCCESS" if refused is None else "FAILURE",
        details=details,
    )
