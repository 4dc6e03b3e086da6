"""`billfold customers`: list and show customers, and operator-only changes."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from billfold.accounts.customers import store
from billfold.accounts.customers.commands import CloseCustomer, SetCustomerState
from billfold.accounts.pockets import store as pocket_store
from billfold.audit.record import audited
from billfold.cli.command import (
    EXAMPLE_ID,
    OPERATOR,
    Alone,
    CommandGroup,
    Row,
    console,
    require_alone,
    submit_as_operator,
)
from billfold.cli.context import CliError
from billfold.events.changes import LIMITS_CHANGED, job_of
from billfold.identity.partners.rules import FEATURES
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.book.book import BANK_ROLE
from billfold.ledger.customers import CustomerRow, CustomerStatus
from billfold.ledger.directory import find_customer
from billfold.ledger.dry_run import dry_run
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.database.connection import Connection
from billfold.platform.dates import format_eastern
from billfold.platform.errors import Refused

group = CommandGroup("customers", "See customers, freeze them, switch their features.", example="list --status FROZEN")

CustomerId = Annotated[UUID, typer.Argument(help="The customer's id.")]
Feature = Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(FEATURES))}.")]
Reason = Annotated[str, typer.Option(help="Why, for the audit logs of the bank and the customer.")]


@group.table(
    "list --status FROZEN --partner acme", columns=("customer", "name", "partner", "status", "opened"), empty="None."
)
async def list_all(
    conn: Connection,
    *,
    status: Annotated[CustomerStatus | None, typer.Option(help="Only these.")] = None,
    partner: Annotated[str | None, typer.Option(help="Only those of this partner.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 200,
) -> Iterable[Row]:
    """List customers, newest first."""
    return [
        (each.customer_id, escape(each.name), each.partner, each.status, each.opened_at)
        for each in await store.list_for_operator(conn, status, partner, limit=limit)
    ]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, customer_id: CustomerId) -> None:
    """Show a customer with its Pockets and features, and what prevents closing it."""
    row = await _get(bank, customer_id)
    own = await store.list_own_features(bank.pool, customer_id)
    features = await store.list_features(bank.pool, customer_id)
    lines = [f"{row.name} ({row.type}) is {row.account_status}, opened {format_eastern(row.opened_at)}"]
    if row.closed_at is not None:
        lines.append(f"closed {format_eastern(row.closed_at)} for {row.closure_reason}")
    for pocket_id in await pocket_store.list_ids(bank.pool, customer_id):
        pocket = await pocket_store.get_pocket(bank.pool, customer_id, pocket_id)
        lines.append(f"pocket {pocket_id} {pocket.name} {pocket.status}")
    for name in sorted({*features, *own}):
        state = "on" if name in features else "off"
        lines.append(f"feature {name} {state}, {'for this customer only' if name in own else 'as for its partner'}")
    if row.account_status != CustomerStatus.CLOSED:
        lines.append(await _describe_closing(bank, row))
    for line in lines:
        console.print(escape(line), soft_wrap=True)


@group.command(f"enable {EXAMPLE_ID} wires")
async def enable(bank: Bank, customer_id: CustomerId, feature: Feature) -> str:
    """Enable a feature for one customer, regardless of its partner."""
    return await _set_feature(bank, customer_id, feature, enabled=True)


@group.command(f"disable {EXAMPLE_ID} wires")
async def disable(bank: Bank, customer_id: CustomerId, feature: Feature) -> str:
    """Disable a feature for one customer, regardless of its partner."""
    return await _set_feature(bank, customer_id, feature, enabled=False)


@group.command(f"freeze {EXAMPLE_ID} --reason 'Court order 7/25' --alone")
async def freeze(bank: Bank, customer_id: CustomerId, *, reason: Reason, alone: Alone = False) -> str:
    """Freeze a customer: it can read and receive money; nothing goes out, and it can start nothing new."""
    require_alone("customer", alone=alone)
    return await _set_status(bank, customer_id, CustomerStatus.FROZEN, reason=reason)


@group.command(f"unfreeze {EXAMPLE_ID} --reason 'Court order 9/25' --alone")
async def unfreeze(bank: Bank, customer_id: CustomerId, *, reason: Reason, alone: Alone = False) -> str:
    """Unfreeze a customer. A Pocket that was frozen separately stays frozen."""
    require_alone("customer --lift", alone=alone)
    return await _set_status(bank, customer_id, CustomerStatus.OPEN, reason=reason)


async def _set_status(bank: Bank, customer_id: UUID, status: CustomerStatus, *, reason: str) -> str:
    row = await _get(bank, customer_id)
    outcome = await submit_as_operator(
        bank, SetCustomerState, row.customer_id, references=(row.customer_id,), status=status, reason=reason
    )
    already = " already" if outcome["before"] == outcome["status"] else ""
    return f"{row.name} is {outcome['status']}{already}."


async def _describe_closing(bank: Bank, row: CustomerRow) -> str:
    """Return whether the customer could be closed now, and if not, why."""
    closing = CloseCustomer(
        caller=OPERATOR,
        key=ids.new(),
        customers=(row.customer_id,),
        reason="PARTNER_INITIATED_CLOSURE",
        references=(row.customer_id,),
    )
    try:
        async with bank.pool.acquire() as conn:
            await dry_run(conn, bank, closing)
    except Refused as refused:
        return f"cannot be closed: {refused.detail}"
    return "can be closed"


async def _set_feature(bank: Bank, customer_id: UUID, feature: str, *, enabled: bool) -> str:
    name = feature.replace("-", "_")
    if name not in FEATURES:
        raise CliError(f"There is no feature {name!r}.", f"Use one of {', '.join(sorted(FEATURES))}.")
    row = await _get(bank, customer_id)
    async with audited(
        bank, row.customer_id, Origin.operator(), f"feature.{'enabled' if enabled else 'disabled'}", resource_id=name
    ) as action:
        await store.set_feature(action.conn, row.customer_id, name, enabled=enabled)
        job = job_of(LIMITS_CHANGED, row.customer_id, row.customer_id, await bank.now(action.conn))
        await scheduler.schedule(action.conn, [job])
    return f"{name} is {'on' if enabled else 'off'} for {row.name}."


async def _get(bank: Bank, customer_id: UUID) -> CustomerRow:
    row = await find_customer(bank.pool, customer_id)
    if row is None or row.role == BANK_ROLE:
        raise CliError(f"There is no customer {customer_id}.", "See `billfold customers list`.")
    return row
