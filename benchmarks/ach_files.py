"""ACH at size, a part of `billfold bench payments`: a window and a file of 100,000 entries.

A window is numbered, written, kept and transmitted; afterwards its customers get their events. A
file that arrives is kept and checked whole; afterwards its entries are booked. Each of the two is a
process of its own, whose memory is measured after each half.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from benchmarks.bank_workload import BankWorkload, bank_process
from benchmarks.dataset import Location, OpenBank, customer_of, pocket_of, submit_commands, vacuum_and_checkpoint
from benchmarks.measurements import Figure, Timing, figure, seconds_of
from benchmarks.session import Session
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.ledger.bank import Bank
from billfold.ledger.types import Direction
from billfold.payments.ach import store
from billfold.payments.ach.commands import OriginateAch
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.ach.nacha.records import AchFile, Batch, Entry
from billfold.payments.ach.nacha.writer import NachaWriter
from billfold.payments.ach.outbound import AchWindows
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.payments.files.store import read_content
from billfold.platform.clock import monotonic
from billfold.platform.dates import ET
from billfold.platform.ids import command_id

MAX_SECONDS = 10.0
MAX_MIB = 200.0
_CHUNK = 10_000
_NAME, _SENDER = "in.ach", "09100001"
_ACCOUNTS = """
SELECT account_number FROM portal
 WHERE customer_id = ANY($1::uuid[]) AND account_number IS NOT NULL ORDER BY account_number
"""
_HALVES = {
    "ACH window": (("write", "ACH window written"), ("tell", "customers told of it")),
    "ACH gate": (("check", "ACH file checked"), ("book", "ACH file booked")),
}
_DUE = "SELECT max(due_at) FROM ach_entry WHERE file_id IS NULL"
_ACCOUNT_OF: Final = {
    "wire": {"identifier": "5647772655"},
    "ach": {"account_number": "5647772655", "account_type": "CHECKING"},
}


class AchPayments(BankWorkload):
    """A bank that receives a file, and whose customers send entries."""

    async def payees(self, rail: str) -> list[UUID]:
        """Give every customer a counterparty at another bank; return them in order."""
        linked = await submit_commands(self._bank, [_link(nth, rail) for nth in self._portals])
        await vacuum_and_checkpoint(self._bank.pool)
        return [UUID(str(each["counterparty_id"])) for each in linked]

    async def await_clearing(self, entries: int) -> None:
        """Let so many debits of all customers wait for a window, and a file of credits arrive."""
        bank, payees = self._bank, await self.payees("ach")
        await self.morning()
        for first in range(0, entries, _CHUNK):
            lot = range(first, min(entries, first + _CHUNK))
            await submit_commands(bank, [_debit(nth, nth % len(payees), payees) for nth in lot])
        accounts = [row[0] for row in await bank.pool.fetch(_ACCOUNTS, [*map(customer_of, self._portals)])]
        exchange = bank.ports[RailExchanges].ach
        assert isinstance(exchange, ExchangeFolders)
        await exchange.network_side().transmit(_NAME, await _file(bank, accounts, entries))
        await vacuum_and_checkpoint(bank.pool)


class Clearing(BankWorkload):
    """One process of a bank in which entries and a file wait."""

    def __init__(self, opened: OpenBank) -> None:
        super().__init__(opened)
        self._windows, self._gate = AchWindows(), AchFileProcessor()

    async def run(self, half: str) -> Timing:
        """Do one half: write, tell, check or book."""
        started = monotonic()
        done = await getattr(self, f"_{half}")()
        return Timing(done, started, monotonic())

    async def _write(self) -> int:
        await self._windows.assign_numbers(self._bank, await self._bank.pool.fetchval(_DUE))
        waiting = await store.list_unconfirmed(self._bank.pool)
        return sum([await self._windows.transmit(self._bank, file) for file in waiting])

    async def _tell(self) -> int:
        waiting = await store.list_unconfirmed(self._bank.pool)
        for file in waiting:
            await self._windows.confirm(self._bank, file)
        return len(waiting)

    async def _check(self) -> int:
        kept = await self._gate.store_file(self._bank, _NAME)
        assert kept is not None
        await self._gate.check_file(self._bank, await read_content(self._bank, kept.file_id))
        return 1

    async def _book(self) -> int:
        return await self._gate.process_all(self._bank)


def ach_figures(session: Session, location: Location) -> tuple[list[Figure], dict[str, float]]:
    """Return the figures of a window and of a file, and the memory of both processes."""
    figures: list[Figure] = []
    peaks: dict[str, float] = {}
    for name, halves in _HALVES.items():
        with bank_process(location, Clearing, first=False) as process:
            for half, what in halves:
                title = f"{what}, {session.sizes.ach_entries:,} entries"
                session.log(title)
                seconds = seconds_of([process.call("run", half)])
                peaks[name] = process.peak_memory_mib()
                # What customers wait for has a limit; what follows must only not stand in the way.
                bound = half in {"write", "check"}
                figures += [
                    figure(title, "s", [seconds], at_most=MAX_SECONDS if bound else None),
                    figure(f"{title}: peak memory", "MiB", [peaks[name]], at_most=MAX_MIB if bound else None),
                ]
    return figures, peaks


async def _file(bank: Bank, accounts: list[str], entries: int) -> bytes:
    now = (await bank.now()).astimezone(ET).replace(second=0, microsecond=0, tzinfo=None)
    ours = bank.settings.bank_routing_number
    head = AchFile(immediate_destination=ours, immediate_origin="061000146", created_at=now, file_id_modifier="A")
    writer = NachaWriter(head)
    writer.begin(
        Batch(
            batch_number=1,
            company_name="CONTOSO",
            company_identification="9000000001",
            standard_entry_class_code="PPD",
            company_entry_description="PAYROLL",
            effective_entry_date=now.date(),
            originating_dfi_identification=_SENDER,
        )
    )
    for nth in range(entries):
        writer.add(
            Entry(
                transaction_code="22",
                routing_number=ours,
                dfi_account_number=accounts[nth % len(accounts)],
                amount=1_00 + nth,
                individual_name="ADA WORKER",
                trace_number=f"{_SENDER}{nth + 1:07}",
                individual_identification_number=str(nth),
            )
        )
    return writer.end()


def _link(nth: int, rail: str) -> AddCounterparty:
    return AddCounterparty(
        caller="bench",
        key=command_id(f"link-{rail}", str(nth)),
        customers=(customer_of(nth),),
        type=rail,
        counterparty_name={"type": "business", "business_name": "Beta LLC"},
        details={"routing_number": "121182904"} | _ACCOUNT_OF[rail],
        verification="pre_verified",
        is_screened=True,
    )


def _debit(nth: int, customer: int, payees: list[UUID]) -> OriginateAch:
    return OriginateAch(
        caller="bench",
        key=command_id("ach", str(nth)),
        customers=(customer_of(customer),),
        references=(payees[customer],),
        ach_id=command_id("ach-entry", str(nth)),
        pocket_id=pocket_of(customer),
        counterparty_id=payees[customer],
        direction=Direction.DEBIT,
        sec_code="PPD",
        description="DUES",
        amount=10_00 + nth % 977,
    )
