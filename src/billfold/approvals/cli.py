"""`billfold approvals`: what waits for a second person, and what is the operator's to say of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from billfold.approvals.apply_authorizations import apply_authorization_request
from billfold.approvals.store import authorization_requests, mfa_policy, transfer_requests
from billfold.approvals.store.transfer_requests import Filters
from billfold.approvals.types import AuthorizationRequestRow
from billfold.audit import record as audit_record
from billfold.audit.types import Origin
from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.ledger.directory.store import find_customer
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.platform.money import format_usd

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

app = typer.Typer(
    no_args_is_help=True,
    help="See what waits for a second person, and confirm what a team cannot confirm itself.",
    epilog=example("billfold approvals list 5d0c...e1"),
)
_SHOWN = 100

CustomerId = Annotated[UUID, typer.Argument(help="The id of the customer.")]


@app.command("list", epilog=example("billfold approvals list 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def list_pending(ctx: typer.Context, customer: CustomerId) -> None:
    """List the transfers and the sensitive changes of a customer that wait."""

    async def work(bank: Bank) -> list[tuple[UUID, str, datetime]]:
        now = await bank.now()
        transfers = await transfer_requests.list_requests(
            bank.pool, customer, Filters(statuses=["PENDING"]), None, now=now, descending=False, limit=_SHOWN
        )
        changes = await authorization_requests.list_changes(
            bank.pool, customer, None, statuses=["PENDING"], actions=None, now=now, descending=False, limit=_SHOWN
        )
        return [
            (each.request_id, f"{each.type} of {format_usd(each.amount)}", each.expires_at) for each in transfers
        ] + [(each.request_id, each.action, each.expires_at) for each in changes]

    rows = run_with_bank(cli_context(ctx), work)
    console.print(table("", ("id", "what", "until"), rows))


@app.command(epilog=example("billfold approvals confirm 5d0c2a4e-8f00-8000-8000-0000000000e1 <request>"))
def confirm(
    ctx: typer.Context,
    customer: CustomerId,
    request: Annotated[UUID, typer.Argument(help="The id of the authorization request.")],
) -> None:
    """Confirm a sensitive change for a team that has no second person. It is in its audit log.

    Make sure that the company itself wants it. Transfers are never approved here.
    """

    async def work(bank: Bank) -> AuthorizationRequestRow:
        now = await bank.now()
        confirmed = await authorization_requests.confirm_as_operator(
            bank.pool, bank.vault, customer, request, now=now, wall=wall_now()
        )
        if confirmed.applied_at is None:
            await apply_authorization_request(bank, customer, request)
        return await authorization_requests.get_change(bank.pool, customer, request, now=now)

    try:
        result = run_with_bank(cli_context(ctx), work)
    except Refused as refusal:
        raise CliError(refusal.detail, "See `billfold approvals list`.") from None
    if result.refused is not None:
        raise CliError(f"It is confirmed and could not be made: {result.refused}.", "Ask anew.")
    print_success(f"Confirmed: {result.action}.")


@app.command("step-up", epilog=example("billfold approvals step-up 5d0c2a4e-8f00-8000-8000-0000000000e1 --off"))
def require_mfa(
    ctx: typer.Context,
    customer: CustomerId,
    *,
    on: Annotated[bool, typer.Option("--on/--off", help="Ask for it, or leave it.")] = True,
) -> None:
    """Ask for a fresh proof of every reviewer of a customer; strict programs bring one anyway."""

    async def work(bank: Bank) -> None:
        if await find_customer(bank.pool, customer) is None:
            raise CliError("There is no such customer.", "See `billfold partner list`.")
        async with audit_record.audited(
            bank.pool,
            bank.vault,
            customer,
            Origin.operator(),
            "customer.updated",
            resource=("customer", customer),
            now=wall_now(),
            details={"step_up": on},
        ) as recording:
            await mfa_policy.set_step_up(recording, customer, asked=on)

    run_with_bank(cli_context(ctx), work)
    print_success(f"Reviewers {'prove themselves anew' if on else 'need no fresh proof'}.")
