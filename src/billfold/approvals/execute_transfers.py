"""Executes approved transfer requests, once, under the id of their request.

The API does so as soon as the approval is committed. If its process ends first, the job scheduled in the same
commit does it. Before an approval, a dry run of the same command shows
whether the transfer could be executed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.counterparties import store
from billfold.accounts.counterparties.rules.verification_kinds import SANCTION_SCREEN_FAILED
from billfold.accounts.holds.schemas import named
from billfold.approvals import transfer_orders, types
from billfold.approvals.store.approved_requests import ApprovedRequests, load_payment_settings
from billfold.approvals.store.policies import find_refusals
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import RequestContent
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.ledger.dry_run import DryRun, dry_run, dry_run_in_order
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.types import ScheduledJob
from billfold.payments.crypto.withdrawals.rules import SendUsdc
from billfold.payments.crypto.withdrawals.wallet import find_objection_to
from billfold.payments.on_us.commands import OnUsTransferRow, TransferOnUs, TransferOrder, type_of_reversal
from billfold.payments.on_us.store import find_by_ids
from billfold.payments.on_us.worker import CALLER as PENDING_TRANSFER
from billfold.payments.wires.commands import SendWire
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id
from billfold.treasury.rules.withdraw import NOTHING_TO_MOVE

CALLER: Final = "transfer-request"
"""The caller of the command that executes a request; its key is the request's id."""
INSUFFICIENT_FUNDS: Final = "INSUFFICIENT_FUNDS"
POLICY_REFUSED: Final = "POLICY_REFUSED"

_Destination = tuple[UUID, UUID, tuple[str | None, str | None]]
"""A customer, the Pocket that is paid, and the network addresses of both Pockets."""
REASONS: Final = {
    "agreement-not-accepted": "ACCOUNT_UNAVAILABLE",
    "counterparty-not-verified": "ACCOUNT_UNAVAILABLE",
    "insufficient-funds": INSUFFICIENT_FUNDS,
    "counterparty-not-linked": "ACCOUNT_UNAVAILABLE",
    "customer-not-open": "ACCOUNT_UNAVAILABLE",
    "not-found": "ACCOUNT_UNAVAILABLE",
    "nothing-to-move": NOTHING_TO_MOVE,
    "pocket-frozen": "ACCOUNT_UNAVAILABLE",
    "pocket-not-open": "ACCOUNT_UNAVAILABLE",
    "sanction-screen-failed": SANCTION_SCREEN_FAILED,
}
"""Refusal code -> reason why the transfer could not be executed; others: INVALID_TRANSFER."""


async def execute_request(bank: Bank, customer_id: UUID, request_id: UUID) -> None:
    """Execute a request that was just approved, before its job is due."""
    await execute_in_order(bank, customer_id, [request_id])
    await bank.ports[ApprovedRequests].cross_off(request_id)


async def run_execute_job(bank: Bank, appointment: ScheduledJob) -> None:
    """Run the job of an approved request. Running it twice has no further effect."""
    assert appointment.customer_id is not None
    await execute_in_order(bank, appointment.customer_id, [appointment.object_id])


def commands_of(request: types.TransferRequest) -> tuple[UUID, ...]:
    """Return the ids of the commands that can have moved the money of a request.

    Earlier releases used a second command to execute an on-us request.
    """
    callers = (CALLER, PENDING_TRANSFER) if request.type == "ON_US" else (CALLER,)
    return tuple(command_id(each, request.request_id) for each in callers)


async def reject_request(bank: Bank, customer_id: UUID, request_id: UUID, reason: str, **by: object) -> None:
    """Record permanently why an approved request could not be executed, and by which rule of a policy."""
    await TRANSFER_REQUESTS.update_by_bank(
        bank,
        customer_id,
        request_id,
        verb="rejected",
        where="status = 'APPROVED' AND reason IS NULL",
        details={"reason": reason, **by},
        reason=reason,
        **by,
        updated_at=await bank.now(),
    )


async def check_feasible(
    bank: Bank, conn: Connection, content: RequestContent, *, customer_id: UUID, approved: bool = False
) -> DryRun:
    """Return the effect of executing a transfer now. Raises Refused as the execution does.

    One that was `approved` meets the policy in force, which a new one has met before. Amounts that the sandbox rejects
    pass here: they are rejected on execution.
    """
    unverified_wires, has_policy = await load_payment_settings(conn, customer_id)
    if approved and has_policy:
        for refused in (await find_refusals(bank, conn, customer_id, [content])).values():
            raise refused
    (made,) = await commands_for(bank, conn, customer_id, contents=[content], unverified_wires=unverified_wires)
    if isinstance(made, NotFound):
        raise made
    found = await dry_run(conn, bank, made)
    if (refusal := _refusal_in(found)) is not None:
        raise refusal
    return found


async def run_in_order(
    bank: Bank, conn: Connection, contents: Sequence[RequestContent], *, customer_id: UUID
) -> dict[UUID, DryRun | BillfoldError]:
    """Return the effect of executing transfers now, one after the other, by their requests."""
    unverified_wires = await transfer_orders.allows_unverified_wires(conn, customer_id)
    made = await commands_for(bank, conn, customer_id, contents=contents, unverified_wires=unverified_wires)
    found: dict[UUID, DryRun | BillfoldError] = {}
    for content, each in zip(contents, made, strict=True):
        if isinstance(each, NotFound):
            found[content.request_id] = each
    commands = [each for each in made if isinstance(each, Command)]
    for command, run in zip(commands, await dry_run_in_order(conn, bank, commands), strict=True):
        found[command.key] = (_refusal_in(run) or _rejection_in(run) or run) if isinstance(run, DryRun) else run
    return found


def _rejection_in(run: DryRun) -> Refused | None:
    if run.outcome.get("status") != "REJECTED":
        return None
    reason = str(run.outcome.get("reason")).replace("_", " ").lower()
    return Refused("transfer-not-possible", f"The bank would reject it: {reason}. Nothing would move.")


def _refusal_in(run: DryRun) -> Refused | None:
    if run.outcome.get("reason") != INSUFFICIENT_FUNDS:
        return None
    return Refused("insufficient-funds", "The Pocket cannot raise the amount now. Add funds, or lower the amount.")


async def execute_in_order(bank: Bank, customer_id: UUID, request_ids: Sequence[UUID]) -> None:
    """Execute approved requests of a customer, one after the other; a refused one is REJECTED, and stops no other."""
    asked = await asyncio.gather(*(bank.ports[ApprovedRequests].find(customer_id, each) for each in request_ids))
    found = [each for each in asked if each is not None]
    if not found or not bank.settings.execute_transfers:
        return
    unverified_wires, has_policy = found[0].settings
    contents = [each.content for each in found]
    if has_policy:
        contents = await _reject_refused(bank, customer_id, contents)
    made = await commands_for(
        bank, bank.pool, customer_id, contents=contents, unverified_wires=unverified_wires, approved=True
    )
    submitted = (bank.engine.submit(each) for each in made if isinstance(each, Command))
    answers = iter(await asyncio.gather(*submitted, return_exceptions=True))
    failed: BaseException | None = None
    for content, each in zip(contents, made, strict=True):
        answer = next(answers) if isinstance(each, Command) else each
        if isinstance(answer, Answer):
            code = answer.outcome.get("code")
        elif isinstance(answer, Refused | NotFound):
            code = answer.code
        else:  # the database is unavailable: the job runs again
            failed = answer
            continue
        if code is not None:
            await reject_request(bank, customer_id, content.request_id, reason=REASONS.get(code, "INVALID_TRANSFER"))
    if failed is not None:
        raise failed


async def _reject_refused(bank: Bank, customer_id: UUID, contents: list[RequestContent]) -> list[RequestContent]:
    """Return the requests that the policy in force allows; others are REJECTED."""
    refused = await find_refusals(bank, bank.pool, customer_id, contents)
    for request_id, refusal in refused.items():
        await reject_request(bank, customer_id, request_id, POLICY_REFUSED, **refusal.facts)
    return [each for each in contents if each.request_id not in refused]


async def commands_for(
    bank: Bank,
    conn: Db,
    customer_id: UUID,
    *,
    contents: Sequence[RequestContent],
    unverified_wires: bool,
    approved: bool = False,
) -> list[Command | NotFound]:
    """Return the commands that execute requests; for approved ones, a refusal becomes the outcome.

    NotFound stands for one whose customer or counterparty no longer exists.
    """
    on_us = [each for each in contents if isinstance(each.transfer, transfer_orders.OnUsOrder)]
    customer = await find_customer(conn, customer_id) if on_us else None
    links = [(customer_id, each.pocket_id, key) for each in on_us if (key := each.counterparty_id) is not None]
    reversed_ids = [found for each in on_us if (found := each.reverses_id) is not None]
    originals = await find_by_ids(conn, reversed_ids)
    peers = dict(zip(links, await store.find_peers(conn, links), strict=True)) if links else {}
    made: list[Command | NotFound] = []
    for content in contents:
        order = content.transfer
        try:
            if isinstance(order, transfer_orders.WireOrder):
                command: Command = _wire_command(
                    customer_id, content, order, unverified_wires=unverified_wires, approved=approved
                )
            elif isinstance(order, transfer_orders.UsdcOrder):
                command = await _usdc_command(bank, conn, customer_id, content=content, approved=approved)
            else:
                command = _on_us_command(customer, content, order, peers=peers, originals=originals, approved=approved)
        except NotFound as gone:
            made.append(gone)
        else:
            note = None if content.attached is UNSET else content.attached
            made.append(command if note is None else msgspec.structs.replace(command, attached=note, noted=command.key))
    return made


def _on_us_command(
    customer: CustomerRow | None,
    content: RequestContent,
    order: transfer_orders.OnUsOrder,
    *,
    peers: Mapping[store.PeerKey, store.PeerRow | None],
    originals: Mapping[UUID, OnUsTransferRow],
    approved: bool,
) -> TransferOnUs:
    if customer is None or customer.partner_id is None:
        raise NotFound
    payee, kind = content.counterparty_id, "PEER_TO_PEER" if content.counterparty_id else "INTERNAL_REALLOCATION"
    if isinstance(order.details, transfer_orders.Reversal):
        original = originals.get(order.details.transfer_id)
        if original is None:
            raise NotFound("There is no such transfer.")
        kind = type_of_reversal(original)
        to: _Destination = original.customer_id, original.from_pocket_id, (None, None)
    else:
        to = _destination(customer.customer_id, content, order, peers)
    payee_id, to_pocket_id, addresses = to
    return TransferOnUs(
        caller=CALLER,
        key=order.id,
        customers=(customer.customer_id, payee_id),
        transfer_id=order.id,
        type=kind,
        from_pocket_id=order.origin_pocket_id,
        to_pocket_id=to_pocket_id,
        amount=content.requested_cents,
        at_most=content.most_cents,
        keep=content.keep_cents,
        top_up_to=content.target_cents,
        partner_id=customer.partner_id,
        addresses=addresses,
        approved=approved,
        order=(on_us := _on_us(order, payee)),
        hold_id=on_us.hold_id,
        references=on_us.referenced,
    )


def _on_us(order: transfer_orders.OnUsOrder, counterparty_id: UUID | None) -> TransferOrder:
    details = order.details
    return TransferOrder(
        counterparty_id=counterparty_id,
        transfer_type=details.transfer_type if isinstance(details, transfer_orders.InternalReallocation) else None,
        description=order.description,
        end_to_end_identification=order.end_to_end_identification,
        async_mode=True,
        hold_id=named(order.hold_id),
        reverses=details.transfer_id if isinstance(details, transfer_orders.Reversal) else None,
    )


def _wire_command(
    customer_id: UUID,
    content: RequestContent,
    order: transfer_orders.WireOrder,
    *,
    unverified_wires: bool,
    approved: bool,
) -> SendWire:
    return SendWire(
        caller=CALLER,
        key=order.id,
        customers=(customer_id,),
        wire_id=order.id,
        pocket_id=order.origin_pocket_id,
        amount=content.requested_cents,
        at_most=content.most_cents,
        keep=content.keep_cents,
        counterparty_id=order.counterparty_id,
        description=order.description,
        wire_instructions=content.instructions,
        end_to_end_identification=order.end_to_end_identification,
        created_by=CALLER,
        unverified_wires=unverified_wires,
        approved=approved,
        request=msgspec.json.encode(order).decode(),
        hold_id=named(order.hold_id),
        references=(order.counterparty_id, *([order.hold_id] if order.hold_id else ())),
    )


async def _usdc_command(
    bank: Bank, conn: Db, customer_id: UUID, *, content: RequestContent, approved: bool
) -> SendUsdc:
    order = content.transfer
    assert isinstance(order, transfer_orders.UsdcOrder)
    details = (content.payee or {})["details"]
    return SendUsdc(
        caller=CALLER,
        key=order.id,
        customers=(customer_id,),
        withdrawal_id=order.id,
        pocket_id=order.origin_pocket_id,
        amount=order.amount.amount_usdc,
        counterparty_id=order.counterparty_id,
        objection=await find_objection_to(bank, conn, customer_id, details),
        approved=approved,
        references=(order.counterparty_id,),
    )


def _destination(
    customer_id: UUID,
    content: RequestContent,
    order: transfer_orders.OnUsOrder,
    peers: Mapping[store.PeerKey, store.PeerRow | None],
) -> _Destination:
    if isinstance(order.details, transfer_orders.InternalReallocation):
        return customer_id, order.details.destination_pocket_id, (None, None)
    assert isinstance(order.details, transfer_orders.PeerToPeer)
    peer = peers[customer_id, content.pocket_id, order.details.destination_counterparty_id]
    if peer is None:
        raise NotFound("There is no such counterparty.")
    if peer.customer_id is None or peer.pocket_id is None:
        raise NotFound("The counterparty has no Pocket.")
    return peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address)
