"""Books a record of a settlement file to its card, or one that is held in suspense to the card that it belongs to."""

import asyncio
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.dry_run import dry_run
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin
from billfold.payments.cards.authorizations.commands import (
    CardRecord,
    ChargeBack,
    ClearCard,
    RefundCard,
    Represent,
    references_of,
)
from billfold.payments.cards.authorizations.rules.give_back import NO_POCKET
from billfold.payments.cards.settlement import store
from billfold.payments.cards.settlement.file_format import read_file
from billfold.payments.cards.settlement.rows import CALLER, REPEATED
from billfold.payments.cards.settlement.types import (
    Chargeback,
    Presentment,
    RecordOfCard,
    Refund,
    Representment,
    SettlementRecordRow,
)
from billfold.payments.files.contents import read_content
from billfold.payments.suspense.commands import ReleaseFromSuspense
from billfold.payments.suspense.store import get_item
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform import ids
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

OPERATOR: Final = "operator"
_COMMANDS: Final[Mapping[type[RecordOfCard], type[CardRecord]]] = MappingProxyType(
    {Presentment: ClearCard, Refund: RefundCard, Chargeback: ChargeBack, Representment: Represent}
)


async def book_record(bank: Bank, record: RecordOfCard, holder: UUID, settles_on: date) -> Outcome:
    """Book a record to its card; return the outcome.

    Raises NotFound, and Refused when the rule refuses it or its Pocket is closed.
    """
    command = _command_of(record, holder, settles_on, caller=CALLER, key=record.record_id)
    return _require_booked((await bank.engine.submit(command)).outcome)


async def assignment_of(bank: Bank, row: SettlementRecordRow, card_id: UUID) -> CardRecord:
    """Return the command that books a record in suspense to a card; `carry_out_assignment` submits it.

    Raises NotFound for an unknown card. Refuses: suspense-item-settled, suspense-item-stays if it cannot be booked,
    and what the rule refuses.
    """
    _require_held((await get_item(bank.pool, row.item_id)).status)
    holder = (await store.find_holders(bank.pool, [card_id])).get(card_id)
    if holder is None:
        raise NotFound("There is no such card.")
    record = msgspec.structs.replace(await _read_record(bank, row), card_id=card_id)
    if await store.find_payments(bank.pool, [record.record_id]):
        raise Refused("suspense-item-stays", "A record with this id is booked already. Write this one off.")
    settles_on = await store.get_business_date(bank.pool, bank_customer_id(bank.seed))
    command = _command_of(record, holder, settles_on, caller=OPERATOR, key=ids.new())
    async with bank.pool.acquire() as conn:
        _require_booked((await dry_run(conn, bank, command)).outcome)
    return command


async def carry_out_assignment(bank: Bank, command: CardRecord, *, item_id: UUID) -> Outcome:
    """Book a record to a card on the open business date, and release it from suspense. It may be repeated.

    Refuses: suspense-item-settled, and what the rule refuses.
    """
    holder, bank_id = command.customers[0], bank_customer_id(bank.seed)
    item = await get_item(bank.pool, item_id)
    if await store.find_decision(bank.pool, holder, command.command_id) is None:
        _require_held(item.status)
    settles_on = await store.get_business_date(bank.pool, bank_id)
    answer = await bank.engine.submit(msgspec.structs.replace(command, settles_on=settles_on))
    outcome = _require_booked(answer.outcome)
    await bank.engine.submit(
        ReleaseFromSuspense(
            caller=OPERATOR,
            key=command_id("card-settlement.assign", item_id),
            customers=(bank_id,),
            origin=Origin.operator(),
            references=(item_id,),
            item_id=item_id,
            owner_id=holder,
            settles_on=settles_on,
        )
    )
    return outcome


def _command_of(record: RecordOfCard, holder: UUID, settles_on: date, *, caller: str, key: UUID) -> CardRecord:
    own: dict[str, Any] = {name: getattr(record, name) for name in ("merchant", "is_final") if hasattr(record, name)}
    referenced = []
    if isinstance(record, Chargeback | Representment):
        own["original_id"] = record.original_record_id
        referenced.append(record.original_record_id)
    return _COMMANDS[type(record)](
        caller=caller,
        key=key,
        customers=(holder,),
        record_id=record.record_id,
        card_id=record.card_id,
        amount=record.amount,
        settles_on=settles_on,
        network_reference=record.network_reference,
        interchange_cents=record.interchange,
        references=references_of(record.card_id, record.network_reference, *referenced),
        **own,
    )


def _require_booked(outcome: Outcome) -> Outcome:
    if outcome["status"] == NO_POCKET:
        raise Refused("pocket-not-open", "The Pocket of the card is closed.")
    return outcome


def _require_held(status: SuspenseStatus) -> None:
    if status != SuspenseStatus.HELD:
        raise Refused("suspense-item-settled", f"The item is {status} already.")


async def _read_record(bank: Bank, row: SettlementRecordRow) -> RecordOfCard:
    if row.reason == REPEATED:
        raise Refused("suspense-item-stays", "The record is booked from another line. Write this one off.")
    file = await asyncio.to_thread(read_file, await read_content(bank, row.file_id))
    record = dict(file.records)[row.line]
    if not isinstance(record, Presentment | Refund | Chargeback | Representment):
        raise Refused("suspense-item-stays", f"The record is no payment of a card ({row.reason}). Write it off.")
    return record
