"""The simulated card processor's settlement: it keeps what merchants presented, and sends a file per settlement date.

The file arrives in the inbox in the morning of its date, like one of a real processor.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from datetime import date, time
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction, ScheduledJob
from billfold.payments.cards.authorizations.store import get_authorization
from billfold.payments.cards.authorizations.types import AuthorizationStatus, Merchant
from billfold.payments.cards.settlement.booking import book_record
from billfold.payments.cards.settlement.file_format import write_file
from billfold.payments.cards.settlement.inbound import CardSettlementFiles
from billfold.payments.cards.settlement.types import FORMAT, VERSION, Fee, FeeKind, Header, Presentment, RecordOfCard
from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.payments.files.ports import RailExchanges
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id
from billfold.platform.money import round_half_up
from billfold.sandbox.card_processor.launch import CARD_PROCESSOR

CYCLE_JOB: Final = "sandbox.card_cycle"
"""The appointment at which the processor sends the file of a settlement date."""
CLEARING_JOB: Final = "sandbox.card_clearing"
"""The appointment at which the merchant of a swipe claims its money; its object is the authorization."""
CLAIMED_AT: Final = time(4)
SENT_AT: Final = time(5)
_INTERCHANGE_BPS: Final = 150
_NETWORK_FEE_BPS: Final = 13
_PROCESSOR_FEE_CENTS: Final = 5
_WHOLE: Final = 10_000
_record: msgspec.json.Decoder[RecordOfCard] = msgspec.json.Decoder(RecordOfCard)


def interchange_of(amount: int, direction: Direction) -> int:
    """Return what the bank receives of a payment, in cents; of money that comes back it gives it back."""
    cents = round_half_up(amount * _INTERCHANGE_BPS, _WHOLE)
    return cents if direction == Direction.DEBIT else -cents


async def present(bank: Bank, record: RecordOfCard, settles_on: date) -> None:
    """Keep a record for the file of its settlement date. The same record is sent once."""
    await asyncio.to_thread(_append, _kept(bank, settles_on), msgspec.json.encode(record) + b"\n")
    at = et_instant(settles_on, SENT_AT)
    await jobs_store.schedule(
        bank.pool, [ScheduledJob(CYCLE_JOB, command_id("card-cycle", str(settles_on)), None, at=at)]
    )


async def schedule_clearing(bank: Bank, customer_id: UUID, authorization_id: UUID, settles_on: date) -> None:
    """Let a merchant claim a purchase on its settlement date."""
    job = ScheduledJob(CLEARING_JOB, authorization_id, customer_id, at=et_instant(settles_on, CLAIMED_AT))
    await jobs_store.schedule(bank.pool, [job])


async def claim_swipe(bank: Bank, job: ScheduledJob) -> None:
    """Clear a swipe, unless something else has become of it: a scheduled job."""
    assert job.customer_id is not None
    held = await get_authorization(bank.pool, job.customer_id, job.object_id)
    settles_on = bank.calendars.fed_on_or_after(et_date(job.at))
    record = Presentment(
        record_id=command_id(CLEARING_JOB, job.object_id),
        card_id=held.card_id,
        amount=held.remaining,
        interchange=interchange_of(held.remaining, Presentment.direction),
        network_reference=held.network_reference,
        merchant=msgspec.json.decode(held.merchant, type=Merchant),
    )
    if held.status == AuthorizationStatus.PENDING and held.remaining and not held.cleared:
        await present(bank, record, settles_on)
        await book_record(bank, record, job.customer_id, settles_on)


async def send_cycle(bank: Bank, job: ScheduledJob) -> None:
    """Send the file of a settlement date, and let it be taken at once: a scheduled job."""
    settles_on = et_date(job.at)
    lines = (await asyncio.to_thread(_kept(bank, settles_on).read_bytes)).splitlines()
    records = {each.record_id: each for each in map(_record.decode, lines)}
    header = Header(
        format=FORMAT,
        version=VERSION,
        reference=f"CYCLE-{settles_on}",
        bank=bank.settings.bank_routing_number,
        settles_on=settles_on,
        created_at=job.at,
        currency="USD",
    )
    content = write_file(header, [*records.values(), *_fees(settles_on, records.values())])
    exchange = bank.ports[RailExchanges].card
    assert isinstance(exchange, ExchangeFolders)
    await exchange.network_side().transmit(f"card-settlement-{settles_on}.jsonl", content)
    await CardSettlementFiles().process_all(bank)


def _fees(settles_on: date, records: Iterable[RecordOfCard]) -> Iterator[Fee]:
    paid = [each.amount for each in records if each.direction == Direction.DEBIT]
    network = round_half_up(sum(paid) * _NETWORK_FEE_BPS, _WHOLE)
    amounts = {FeeKind.PROCESSOR: len(paid) * _PROCESSOR_FEE_CENTS, FeeKind.NETWORK: network}
    for kind, amount in amounts.items():
        if amount:
            record_id = command_id(f"card-fee:{kind}", str(settles_on))
            yield Fee(record_id=record_id, kind=kind, amount=amount, description=f"{kind.title()} fees")


def _kept(bank: Bank, settles_on: date) -> Path:
    return bank.settings.state_dir / CARD_PROCESSOR / f"presented-{settles_on}.jsonl"


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
