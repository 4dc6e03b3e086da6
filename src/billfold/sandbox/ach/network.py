"""The ACH network of a sandbox: simulated banks take our files and send us theirs."""

from datetime import datetime
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.inbound.files import AchFileProcessor
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.types import AchFile
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.ach.rules import windows
from billfold.payments.ach.store import entries as ach_entries
from billfold.payments.ach.store.files import NumberedFile
from billfold.payments.ach.types import AchWay
from billfold.payments.files import store as files_store
from billfold.payments.files.contents import read_content
from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.payments.files.ports import RailExchanges
from billfold.platform.dates import ET
from billfold.platform.errors import Refused
from billfold.platform.ids import digits
from billfold.sandbox.ach import simulated_network as simulated_ach
from billfold.sandbox.ach.simulated_network import EntryOrder, SentEntry

SIMULATED_ANSWER = "sandbox.ach"
"""The appointment at which the simulated banks answer a file."""


class SimulatedAchNetwork:
    """Everybody else on the network of one sandbox."""

    def __init__(self) -> None:
        self._processor = AchFileProcessor()

    async def schedule_answer(self, bank: Bank, file: NumberedFile) -> None:
        """Let the simulated banks answer a file of ours before business opens after it settled."""
        at = windows.returns_expected_at(file.settles_at or file.made_at, bank.calendars)
        await jobs_store.schedule(bank.pool, [ScheduledJob(SIMULATED_ANSWER, file.file_id, None, at=at)])

    async def answer(self, bank: Bank, at: ScheduledJob) -> None:
        """Answer a file of ours as its receiving banks do, and let the answer arrive."""
        file = await files_store.find_file(bank.pool, at.object_id)
        exchange = _network_side(bank)
        content = await exchange.read(file.name)
        content = content or await read_content(bank, file.file_id)
        # As of when it is due: who answers once more, after a crash, says the same.
        answer_file = simulated_ach.returns_for(read_file(content), _to_minute(at.at))
        if answer_file is not None:
            await self._deliver(bank, f"RETURNS-{file.name}", answer_file)
        await exchange.archive(file.name, report=b"{}")

    async def return_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str) -> None:
        """Let an entry that we sent come back now."""
        sent = await _sent_entry(bank, ach_id)
        ours = bank.settings.bank_routing_number
        answer_file = simulated_ach.return_file([(sent, code)], ours, await _clock(bank))
        await self._deliver(bank, f"RETURN-{key}.ach", answer_file)

    async def change_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str, corrected: str) -> None:
        """Let the bank of an entry that we sent say what to put right."""
        sent = await _sent_entry(bank, ach_id)
        ours = bank.settings.bank_routing_number
        answer_file = simulated_ach.noc_file(sent, code, corrected, to=ours, at=await _clock(bank))
        await self._deliver(bank, f"CHANGE-{key}.ach", answer_file)

    async def send_entry(self, bank: Bank, key: UUID, order: EntryOrder) -> None:
        """Let an entry of another bank reach us now; its numbers are derived from the key."""
        numbered = order._replace(
            identification=digits(bank.seed, key, 1, count=10), number=int(digits(bank.seed, key, 0, count=7))
        )
        answer_file = simulated_ach.entry_file(numbered, await _clock(bank))
        await self._deliver(bank, f"ENTRY-{key}.ach", answer_file)

    async def _deliver(self, bank: Bank, name: str, file: AchFile) -> None:
        await _network_side(bank).transmit(name, write_file(file))
        await self._processor.process_file(bank, name)


def _network_side(bank: Bank) -> ExchangeFolders:
    exchange = bank.ports[RailExchanges].ach
    assert isinstance(exchange, ExchangeFolders)
    return exchange.network_side()


async def _clock(bank: Bank) -> datetime:
    """Return the time as the network writes it: minutes of Eastern time, no offset."""
    return _to_minute(await bank.now())


def _to_minute(now: datetime) -> datetime:
    return now.astimezone(ET).replace(second=0, microsecond=0, tzinfo=None)


async def _sent_entry(bank: Bank, ach_id: UUID) -> SentEntry:
    """Return an entry as our file says it. Raises Refused when it has not gone."""
    entry = await ach_entries.get_entry(bank.pool, ach_id)
    sent = None
    if entry.file_id is not None and entry.way == AchWay.ORIGINATION:
        sent_file = read_file(await read_content(bank, entry.file_id))
        candidates = (each for each in simulated_ach.entries_of(sent_file))
        sent = next((each for each in candidates if each.entry.trace_number == entry.trace_number), None)
    if sent is None:
        raise Refused("ach-origination-not-sent", f"The origination is {entry.status}: not sent.")
    return sent
