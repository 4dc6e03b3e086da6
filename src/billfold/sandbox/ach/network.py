"""The ACH network of a sandbox: simulated banks take our files and send us theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs import types as jobs_types
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.writer import as_text, write_file
from billfold.payments.ach.rules import windows
from billfold.payments.ach.store import entries as ach_entries
from billfold.payments.ach.types import AchWay
from billfold.payments.files import store as files_store
from billfold.payments.files.folder_exchange import ExchangeFolders
from billfold.platform.dates import ET
from billfold.platform.errors import Refused
from billfold.platform.ids import digits
from billfold.sandbox.ach import simulated_network as simulated_ach
from billfold.sandbox.ach.simulated_network import Order, Sent

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import Appointment
    from billfold.payments.ach.inbound.files import AchGate
    from billfold.payments.ach.ports import AchFile
    from billfold.payments.ach.store.files import Numbered
    from billfold.sandbox.simulation import AchOrder


WORLD = "sandbox.ach"
"""The appointment at which the simulated banks answer a file."""


async def on_handed(bank: Bank, file: Numbered) -> None:
    """Let the simulated banks answer a file before business opens after it settled."""
    if not bank.settings.is_production:
        at = windows.answered_at(file.settles_at or file.made_at, bank.calendars)
        await jobs_store.make(bank.pool, [jobs_types.Appointment(WORLD, file.file_id, None, at)])


class AchWorld:
    """Everybody else on the network of one sandbox."""

    def __init__(self, gate: AchGate) -> None:
        self._gate = gate

    async def answer(self, bank: Bank, at: Appointment) -> None:
        """Answer a file of ours as its receiving banks do, and let the answer arrive."""
        file = await files_store.find_file(bank.pool, at.object_id)
        other = _other_side(bank)
        content = await other.read(file.name)
        content = content or await files_store.read_content(bank.pool, file.file_id)
        # As of when it is due: who answers once more, after a crash, says the same.
        made = simulated_ach.answer_to(read_file(content), _minute(at.at))
        if made is not None:
            await self._arrive(bank, f"RETURNS-{file.name}", made)
        await other.put_away(file.name, report=b"{}")

    async def return_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str) -> None:
        """Let an entry that we sent come back now."""
        sent = await _sent(bank, ach_id)
        ours = bank.settings.bank_routing_number
        made = simulated_ach.returned([(sent, code)], ours, await _clock(bank))
        await self._arrive(bank, f"RETURN-{key}.ach", made)

    async def change_entry(
        self, bank: Bank, key: UUID, ach_id: UUID, code: str, corrected: str
    ) -> None:
        """Let the bank of an entry that we sent say what to put right."""
        sent = await _sent(bank, ach_id)
        ours = bank.settings.bank_routing_number
        made = simulated_ach.changed(sent, code, corrected, ours, await _clock(bank))
        await self._arrive(bank, f"CHANGE-{key}.ach", made)

    async def send_entry(self, bank: Bank, key: UUID, order: AchOrder) -> None:
        """Let an entry of somebody's reach us now."""
        made = simulated_ach.ordered(
            Order(
                routing_number=order.routing_number, account_number=order.account_number,
                amount=order.amount, is_debit=order.is_debit,
                company=as_text(order.company_name, 16), entry_class=order.sec_code,
                purpose=as_text(order.description, 10),
                identification=digits(bank.seed, key, 1, 10),
                number=int(digits(bank.seed, key, 0, 7)),
            ),
            await _clock(bank),
        )  # fmt: skip
        await self._arrive(bank, f"ENTRY-{key}.ach", made)

    async def _arrive(self, bank: Bank, name: str, file: AchFile) -> None:
        await _other_side(bank).hand_over(name, write_file(file))
        await self._gate.take_file(bank, name)


def _other_side(bank: Bank) -> ExchangeFolders:
    assert isinstance(bank.rails.ach, ExchangeFolders)
    return bank.rails.ach.other_side()


async def _clock(bank: Bank) -> datetime:
    """Return the time as the network writes it: minutes of Eastern time, no offset."""
    return _minute(await bank.now())


def _minute(now: datetime) -> datetime:
    return now.astimezone(ET).replace(second=0, microsecond=0, tzinfo=None)


async def _sent(bank: Bank, ach_id: UUID) -> Sent:
    """Return an entry as our file says it. Raises Refused when it has not gone."""
    entry = await ach_entries.get_entry(bank.pool, ach_id)
    sent = None
    if entry.file_id is not None and entry.way == AchWay.ORIGINATION:
        told = read_file(await files_store.read_content(bank.pool, entry.file_id))
        traced = (each for each in simulated_ach.entries_of(told))
        sent = next((each for each in traced if each.entry.trace == entry.trace_number), None)
    if sent is None:
        raise Refused("ach-origination-not-sent", f"The origination is {entry.status}: not sent.")
    return sent
