"""Books a record of a settlement file to its card, or one that is held in suspense to the card that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from billfold.audit.types import Origin
from billfold.ledger.jobs.due_work import bank_customer_id
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
from billfold.payments.cards.settlement.types import Chargeback, Presentment, Refund, Representment
from billfold.payments.files.contents import read_content
from billfold.payments.suspense.commands import ReleaseFromSuspense
from billfold.payments.suspense.store import get_item
from billfold.payments.suspense.types import SuspenseStatus
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Outcome
    from billfold.payments.cards.settlement.types import RecordOfCard, SettlementRecordRow

OPERATOR: Final = "operator"
_COMMANDS: Final[Mapping[type[RecordOfCard], type[CardRecord]]] = MappingProxyType(
    {Presentment: ClearCard, Refund: RefundCard, Chargeback: ChargeBack, Representment: Represent}
)


async def book_record(
    bank: Bank, record: RecordOfCard, holder: UUID, settles_on: date, *, key: UUID | None = None
) -> Outcome:
    """Book a record to its card; return the outcome.

    Raises NotFound, and Refused when the rule refuses it or its Pocket is closed.
    """
    own: dict[str, Any] = {name: getattr(record, name) for name in ("merchant", "is_final") if hasattr(record, name)}
    referenced = []
    if isinstance(record, Chargeback | Representment):
        own["original_id"] = record.original_record_id
        referenced.append(record.original_record_id)
    answer = await bank.engine.submit(
        _COMMANDS[type(record)](
            caller=CALLER,
            key=key or record.record_id,
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
    )
    if answer.outcome["status"] == NO_POCKET:
        raise Refused("pocket-not-open", "The Pocket of the card is closed.")
    return answer.outcome


async def assign_record(bank: Bank, row: SettlementRecordRow, card_id: UUID) -> None:
    """Book a record that is held in suspense to a card, and release it. It may be repeated after a crash.

    Raises NotFound for an unknown card. Refuses: suspense-item-settled, suspense-item-stays if it cannot be booked,
    and what the rule refuses.
    """
    item = await get_item(bank.pool, row.item_id)
    if item.status != SuspenseStatus.HELD:
        raise Refused("suspense-item-settled", f"The item is {item.status} already.")
    holder = (await store.find_holders(bank.pool, [card_id])).get(card_id)
    if holder is None:
        raise NotFound("There is no such card.")
    record = await _read_record(bank, row)
    bank_id = bank_customer_id(bank.seed)
    settles_on = await store.get_business_date(bank.pool, bank_id)
    key = await _key_of_attempt(bank, row, holder)
    await book_record(bank, msgspec.structs.replace(record, card_id=card_id), holder, settles_on, key=key)
    await bank.engine.submit(
        ReleaseFromSuspense(
            caller=OPERATOR,
            key=command_id("card-settlement.assign", row.item_id),
            customers=(bank_id,),
            origin=Origin.operator(),
            references=(row.item_id,),
            item_id=row.item_id,
            owner_id=holder,
            settles_on=settles_on,
        )
    )


async def _read_record(bank: Bank, row: SettlementRecordRow) -> RecordOfCard:
    if row.reason == REPEATED:
        raise Refused("suspense-item-stays", "The record is booked from another line. Write this one off.")
    file = await asyncio.to_thread(read_file, await read_content(bank, row.file_id))
    record = dict(file.records)[row.line]
    if not isinstance(record, Presentment | Refund | Chargeback | Representment):
        raise Refused("suspense-item-stays", f"The record is no payment of a card ({row.reason}). Write it off.")
    return record


async def _key_of_attempt(bank: Bank, row: SettlementRecordRow, holder: UUID) -> UUID:
    """Return the key of the attempt that was accepted, or of the next: a refusal is stored under its key."""
    attempt = 0
    while True:
        key = command_id(f"card-settlement.assign:{attempt}", row.item_id)
        is_booked = await store.find_decision(bank.pool, holder, command_id(CALLER, key))
        if is_booked is not False:
            return key
        attempt += 1
