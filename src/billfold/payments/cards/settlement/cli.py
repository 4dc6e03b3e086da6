"""`billfold card-settlement`: files of the card processor, and records that could not be booked."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.cli.context import CliError
from billfold.dual_control.cli import said_of
from billfold.dual_control.decisions import propose_movement
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.cards.settlement import store
from billfold.payments.cards.settlement.inbound import assignment_of
from billfold.payments.cards.settlement.records import SettlementRecordRow
from billfold.payments.suspense.decisions import propose_write_off
from billfold.payments.suspense.store import get_item
from billfold.platform.errors import NotFound
from billfold.platform.money import format_usd

group = CommandGroup(
    "card-settlement", "Show files of the card processor, and work on records that were not booked.", example="list"
)

ItemId = Annotated[UUID, typer.Argument(help="The item's id, from the list of exceptions.")]


@group.table(
    "list",
    columns=("reference", "settles on", "records>", "fees>", "interchange>", "net settlement>", "file"),
    empty="No settlement file has arrived.",
)
async def list_files(bank: Bank) -> Iterable[Row]:
    """List the last hundred accepted files. A positive net settlement is paid by the bank."""
    return [
        (
            each.reference,
            each.settles_on,
            each.records,
            format_usd(each.fees),
            format_usd(each.interchange),
            format_usd(each.net_settlement),
            each.file_id,
        )
        for each in await store.list_files(bank.pool)
    ]


@group.table(
    "exceptions",
    columns=("item", "record", "type", "card", "direction", "amount>", "reason", "file and line"),
    empty="Every record is booked.",
)
async def exceptions(bank: Bank) -> Iterable[Row]:
    """List the records that are held in suspense, oldest first."""
    rows = await store.list_held(bank.pool)
    return [
        (
            row.item_id,
            row.record_id,
            row.type,
            row.card_id,
            row.direction,
            format_usd(row.amount),
            reason,
            f"{row.file_id} {row.line}",
        )
        for row, reason in rows
    ]


@group.command(f"assign {EXAMPLE_ID} --card 91b2...01")
async def assign(
    bank: Bank,
    item_id: ItemId,
    card: Annotated[UUID | None, typer.Option(help="The card it belongs to; by default the record's own.")] = None,
) -> str:
    """Propose to book a record to a card, its own or another; another operator confirms it."""
    record = await _record(bank, item_id)
    card_id = card or record.card_id
    if card_id is None:
        raise CliError("The record has no card.", "Name one with --card, or write it off.")
    command = await assignment_of(bank, record, card_id)
    what = f"the {record.type.lower()} of {format_usd(record.amount)}"
    return said_of(
        await propose_movement(
            bank,
            command,
            about=item_id,
            words=f"Book {what} to card {card_id}: item {item_id}",
            reason=(await get_item(bank.pool, item_id)).reason,
            by=Operator.of_command_line(bank.settings.operator),
        )
    )


@group.command(f"write-off {EXAMPLE_ID} --reason 'The card is not ours'")
async def write_off(
    bank: Bank, item_id: ItemId, reason: Annotated[str, typer.Option(help="Why, for the audit log.")]
) -> str:
    """Propose to book a record to the bank's losses: it has no card, and the processor does not accept it back."""
    await _record(bank, item_id)
    return said_of(
        await propose_write_off(bank, item_id, reason=reason, by=Operator.of_command_line(bank.settings.operator))
    )


async def _record(bank: Bank, item_id: UUID) -> SettlementRecordRow:
    try:
        return await store.get_record(bank.pool, item_id)
    except NotFound:
        raise CliError("No record has this item.", "See `billfold card-settlement exceptions`.") from None
