"""`billfold approvals`: requests that wait for a second user, and the operator's decisions about them."""

from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

import msgspec
import typer

from billfold.accounts.counterparties.store import open_order
from billfold.approvals.authorization_requests import apply_now, confirm_as_operator, open_contacts
from billfold.approvals.store import approval_rules, reviews
from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import content_of
from billfold.audit import record
from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, print_line
from billfold.cli.context import CliError
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin
from billfold.platform.errors import Refused

group = CommandGroup(
    "approvals",
    "Show requests that wait for a second user, and confirm those that a team cannot.",
    example="list 5d0c...e1",
)
_SHOWN = 100

CustomerId = Annotated[UUID, typer.Argument(help="The id of the customer.")]
RequestId = Annotated[UUID, typer.Argument(help="The id of the authorization request.")]


@group.table(f"list {EXAMPLE_ID}", columns=("id", "what", "until"))
async def list_pending(bank: Bank, customer: CustomerId) -> Iterable[Row]:
    """List the pending transfer requests and authorization requests of a customer."""
    now = await bank.now()
    pending = (bank.pool, customer, now, ["PENDING"], None)
    transfers = await TRANSFER_REQUESTS.listed.rows(*pending, *[None] * 9, descending=False, limit=_SHOWN)
    changes = await AUTHORIZATION_REQUESTS.listed.rows(*pending, descending=False, limit=_SHOWN)
    rows: list[Row] = [(t.request_id, f"{t.type} of {content_of(t).amount_text}", t.expires_at) for t in transfers]
    return rows + [(each.request_id, each.action, each.expires_at) for each in changes]


@group.command(f"show {EXAMPLE_ID} <request>")
async def show(bank: Bank, customer: CustomerId, request: RequestId) -> None:
    """Show the exact change that an authorization request would apply, and why it is pending."""
    found = await AUTHORIZATION_REQUESTS.get(bank.pool, customer, request, now=await bank.now())
    blockers = await reviews.find_blockers(bank.pool, customer, [found], kind=AUTHORIZATION_REQUESTS)
    content: dict[str, Any] = msgspec.json.decode(open_contacts(bank.vault, found).content)
    if (added := content["change"].get("counterparty")) is not None:
        ring = await bank.ports[DataKeys].load(bank.pool, (customer,))
        content["change"]["counterparty"] = open_order(ring.get(customer), added)
    print_line(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())
    print_line(f"{found.status}, SHA-256 {found.content_hash.hex()}")
    for blocker in blockers.values():
        print_line(blocker)


@group.command(f"confirm {EXAMPLE_ID} <request>")
async def confirm(bank: Bank, customer: CustomerId, request: RequestId) -> str:
    """Confirm a sensitive change for a team without a second user. Its audit log records it.

    Read it with `show`, and make sure that the company really wants it. Transfers cannot be approved here.
    """
    try:
        confirmed = await confirm_as_operator(bank, customer, request)
        if confirmed.applied_at is None:
            await apply_now(bank, confirmed)
        result = await AUTHORIZATION_REQUESTS.get(bank.pool, customer, request, now=await bank.now())
    except Refused as refusal:
        raise CliError(refusal.detail, "See `billfold approvals list`.") from None
    if result.refused is not None:
        raise CliError(f"It is confirmed and could not be applied: {result.refused}.", "Request it again.")
    return f"Confirmed: {result.action}."


@group.command(f"require-mfa {EXAMPLE_ID} --off")
async def require_mfa(
    bank: Bank,
    customer: CustomerId,
    *,
    on: Annotated[bool, typer.Option("--on/--off", help="Require it or not.")] = True,
) -> str:
    """Require reviewers of a customer to re-authenticate, or not; FAPI clients require it in any case.

    By default it is required in production and not in a sandbox.
    """
    if await find_customer(bank.pool, customer) is None:
        raise CliError("There is no such customer.", "See `billfold partner list`.")
    async with record.audited(
        bank, customer, Origin.operator(), "customer.updated", resource_id=customer, details={"step_up": on}
    ) as recording:
        await approval_rules.set_step_up(recording, customer, required=on)
    return f"Reviewers {'must re-authenticate' if on else 'need not re-authenticate'}."
