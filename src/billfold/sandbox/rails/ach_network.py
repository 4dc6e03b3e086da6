"""The ACH network of a sandbox: simulated banks take our files and send us theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach import store as ach_store
from billfold.payments.ach.commands import AchWay
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.ach.nacha import records
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.records import (
    AchFile,
    Batch,
    Entry,
)
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.ach.rules import windows
from billfold.payments.ach.store import NumberedFile
from billfold.payments.deposits.rules import ACH_SETTLES_AFTER, IncomingAch
from billfold.payments.files import store as file_store
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.payments.files.store import read_content
from billfold.platform.dates import ET, et_date
from billfold.platform.errors import Refused
from billfold.platform.ids import digits
from billfold.sandbox.rails.correspondent import BookLine, Correspondent

_HAS_ARRIVED = "SELECT EXISTS (SELECT 1 FROM rail_file WHERE rail = 'ACH' AND direction = 'IN' AND name = $1)"
SIMULATED_ANSWER = "sandbox.ach"
"""The scheduled job in which the simulated banks answer a file."""


class SimulatedAchNetwork:
    """All other banks on the network of one sandbox."""

    def __init__(self) -> None:
        self._processor = AchFileProcessor()

    async def schedule_answer(self, bank: Bank, file: NumberedFile) -> None:
        """Let the simulated banks answer a file of ours before business opens after it settled."""
        sent = read_file(await read_content(bank, file.file_id))
        made_on, on = et_date(file.made_at), et_date(file.settles_at or file.made_at)
        await _record(bank, file.name, sent, is_ours=True, returns_on=made_on, others_on=on)
        at = windows.returns_expected_at(file.settles_at or file.made_at, bank.calendars)
        await scheduler.schedule(bank.pool, [ScheduledJob(SIMULATED_ANSWER, file.file_id, None, at=at)])

    async def answer(self, bank: Bank, at: ScheduledJob) -> None:
        """Answer a file of ours like its receiving banks, and deliver the answer."""
        file = await file_store.find_file(bank.pool, at.object_id)
        exchange = _network_side(bank)
        content = await exchange.read(file.name)
        content = content or await read_content(bank, file.file_id)
        # As of its due time: a repeated answer, after a crash, is the same.
        answer_file = returns_for(read_file(content), _to_minute(at.at))
        if answer_file is not None:
            await self._deliver(bank, f"RETURNS-{file.name}", answer_file)
        await exchange.archive(file.name, report=b"{}")

    async def return_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str) -> None:
        """Return an entry that we sent, now."""
        sent = await _sent_entry(bank, ach_id)
        ours = bank.settings.bank_routing_number
        answer_file = return_file([(sent, code)], ours, await _clock(bank))
        await self._deliver(bank, f"RETURN-{key}.ach", answer_file)

    async def change_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str, corrected: str) -> None:
        """Send a notification of change for an entry that we sent."""
        sent = await _sent_entry(bank, ach_id)
        ours = bank.settings.bank_routing_number
        answer_file = noc_file(sent, code, corrected, to=ours, at=await _clock(bank))
        await self._deliver(bank, f"CHANGE-{key}.ach", answer_file)

    async def send_entry(self, bank: Bank, key: UUID, order: EntryOrder) -> None:
        """Receive an entry of another bank now; its numbers are derived from the key."""
        numbered = order._replace(
            identification=digits(bank.seed, key, 1, count=10), number=int(digits(bank.seed, key, 0, count=7))
        )
        answer_file = entry_file(numbered, await _clock(bank))
        await self._deliver(bank, f"ENTRY-{key}.ach", answer_file)

    async def _deliver(self, bank: Bank, name: str, file: AchFile) -> None:
        if not await bank.pool.fetchval(_HAS_ARRIVED, name):  # a repeated request would send it at another time
            now = await bank.now()
            on = bank.calendars.add_fed_days(bank.calendars.business_date(now), ACH_SETTLES_AFTER)
            await _record(bank, name, file, is_ours=False, returns_on=et_date(now), others_on=on)
            await _network_side(bank).transmit(name, write_file(file))
        await self._processor.process_file(bank, name)


def _network_side(bank: Bank) -> ExchangeFolders:
    exchange = bank.ports[RailExchanges].ach
    assert isinstance(exchange, ExchangeFolders)
    return exchange.network_side()


async def _clock(bank: Bank) -> datetime:
    """Return the time in the network's format: minutes of Eastern time, no offset."""
    return _to_minute(await bank.now())


def _to_minute(now: datetime) -> datetime:
    return now.astimezone(ET).replace(second=0, microsecond=0, tzinfo=None)


async def _sent_entry(bank: Bank, ach_id: UUID) -> SentEntry:
    """Return an entry as it is in our file. Raises Refused if it was not sent."""
    entry = await ach_store.get_entry(bank.pool, ach_id)
    sent = None
    if entry.file_id is not None and entry.way == AchWay.ORIGINATION:
        sent_file = read_file(await read_content(bank, entry.file_id))
        candidates = (each for each in entries_of(sent_file))
        sent = next((each for each in candidates if each.entry.trace_number == entry.trace_number), None)
    if sent is None:
        raise Refused("ach-origination-not-sent", f"The origination is {entry.status}: not sent.")
    return sent


OPERATOR, OPERATOR_NAME = "061000146", "FEDERAL RESERVE BANK"
NO_SUCH_BANK = "091000019"
_RETURNED_CENTS = 3
SENDER = "09100001"
"""The first digits of the bank that companies of the sandbox send from."""


class SentEntry(NamedTuple):
    """An entry of ours and the batch it was in."""

    batch: Batch
    entry: Entry


class EntryOrder(NamedTuple):
    """An entry that another bank will send us. `amount` in cents."""

    routing_number: str
    account_number: str
    amount: int
    is_debit: bool
    company: str
    entry_class: str
    purpose: str
    identification: str = ""
    number: int = 0  # the last seven digits of its trace


def ach_credit(seed: bytes, ach_id: UUID, to: Mapping[str, str], *, amount: int, company_name: str) -> IncomingAch:
    """Return an ACH credit that needs no file; its numbers are derived from its id, so it repeats."""
    return IncomingAch(
        ach_id=ach_id,
        **to,
        amount=amount,
        company_name=company_name,
        company_entry_description="PAYMENT",
        individual_identification_number=digits(seed, ach_id, 2, count=10),
        trace_number=SENDER + digits(seed, ach_id, 0, count=7),
    )


async def _record(bank: Bank, name: str, file: AchFile, *, is_ours: bool, returns_on: date, others_on: date) -> None:
    """Record what the entries of a file move on the account of the bank, and on which days."""
    lines: dict[date, list[BookLine]] = {returns_on: [], others_on: []}
    for entry in (entry for batch in file.batches for entry in batch.entries):
        signed = entry.amount if entry.is_debit == is_ours else -entry.amount
        day = returns_on if entry.transaction_code[1] in "16" else others_on
        lines[day].append(BookLine(f"{name}-{entry.trace_number}", signed, "ACH", entry.trace_number))
    for day, found in lines.items():
        await Correspondent(bank).record(day, found)


def entries_of(file: AchFile) -> Iterator[SentEntry]:
    """Yield the entries of a file that pay or collect; answers are not answered."""
    for batch in file.batches:
        for entry in batch.entries:
            if entry.transaction_code[1] not in "16":
                yield SentEntry(batch, entry)


def returns_for(file: AchFile, at: datetime) -> AchFile | None:
    """Return the file of returns that answers a file of ours, None if there are none."""
    returns = [(sent, code) for sent in entries_of(file) if (code := _code(sent)) is not None]
    return return_file(returns, file.immediate_origin, at) if returns else None


def return_file(returns: Iterable[tuple[SentEntry, str]], to: str, at: datetime) -> AchFile:
    """Return a file that returns these entries."""
    answers = [(sent, _return(sent, code)) for sent, code in returns]
    return _file_of(answers, to, at)


def noc_file(sent: SentEntry, code: str, corrected: str, to: str, at: datetime) -> AchFile:
    """Return a file with a notification of change for an entry."""
    addendum = records.NocAddenda(
        change_code=code,
        original_entry_trace_number=sent.entry.trace_number,
        original_receiving_dfi_identification=sent.entry.routing_number[:8],
        corrected_data=corrected,
    )
    return _file_of([(sent, addendum)], to, at)


def entry_file(order: EntryOrder, at: datetime) -> AchFile:
    """Return a file with one entry from a company of the sandbox."""
    entry = Entry(
        transaction_code="27" if order.is_debit else "22",
        routing_number=order.routing_number,
        dfi_account_number=order.account_number,
        amount=order.amount,
        individual_name="ACCOUNT HOLDER",
        individual_identification_number=order.identification,
        discretionary_data="S" if order.entry_class == "WEB" else "",
        trace_number=f"{SENDER}{order.number:07}",
    )
    batch = Batch(
        batch_number=1,
        company_name=order.company,
        company_identification="9000000001",
        standard_entry_class_code=order.entry_class,
        company_entry_description=order.purpose,
        effective_entry_date=at.date(),
        originating_dfi_identification=SENDER,
        entries=(entry,),
        settlement_date=at.timetuple().tm_yday,
    )
    return _file((batch,), order.routing_number, at)


def _code(sent: SentEntry) -> str | None:
    if sent.entry.routing_number == NO_SUCH_BANK:
        return "R03"
    if sent.entry.amount % 100 == _RETURNED_CENTS:
        return "R01" if sent.entry.is_debit else "R02"
    return None


def _return(sent: SentEntry, code: str) -> records.ReturnAddenda:
    return records.ReturnAddenda(
        return_reason_code=code,
        original_entry_trace_number=sent.entry.trace_number,
        original_receiving_dfi_identification=sent.entry.routing_number[:8],
    )


def _file_of(answers: Iterable[tuple[SentEntry, records.Addenda]], to: str, at: datetime) -> AchFile:
    batches: list[Batch] = []
    for (batch, bank), group in groupby(answers, _batch_and_bank):
        is_noc = False
        entries = []
        for number, (sent, addendum) in enumerate(group, start=1):
            is_noc = isinstance(addendum, records.NocAddenda)
            entries.append(_answer_entry(sent.entry, addendum, to, trace=_trace(bank, len(batches), number)))
        batches.append(
            Batch(
                batch_number=len(batches) + 1,
                company_name=batch.company_name,
                company_identification=batch.company_identification,
                standard_entry_class_code=records.NOC_ENTRY_CLASS if is_noc else batch.standard_entry_class_code,
                company_entry_description=batch.company_entry_description,
                effective_entry_date=at.date(),
                originating_dfi_identification=bank,
                entries=tuple(entries),
                settlement_date=at.timetuple().tm_yday,
            )
        )
    return _file(tuple(batches), to, at)


def _batch_and_bank(answer: tuple[SentEntry, records.Addenda]) -> tuple[Batch, str]:
    sent, _ = answer
    return sent.batch, sent.entry.routing_number[:8]


def _trace(bank: str, batch: int, number: int) -> str:
    return f"{bank}{batch * 1000 + number:07}"


def _answer_entry(entry: Entry, addendum: records.Addenda, to: str, trace: str) -> Entry:
    return Entry(
        transaction_code=entry.transaction_code[0] + ("6" if entry.is_debit else "1"),
        routing_number=to,
        dfi_account_number=entry.dfi_account_number,
        amount=0 if isinstance(addendum, records.NocAddenda) else entry.amount,
        individual_name=entry.individual_name,
        individual_identification_number=entry.individual_identification_number,
        trace_number=trace,
        addenda=(addendum,),
    )


def _file(batches: tuple[Batch, ...], to: str, at: datetime) -> AchFile:
    return AchFile(
        immediate_destination=to,
        immediate_origin=OPERATOR,
        immediate_origin_name=OPERATOR_NAME,
        created_at=at,
        file_id_modifier="A",
        batches=batches,
    )
