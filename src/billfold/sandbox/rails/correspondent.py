"""The bank that keeps the sandbox's reserve: its book of what the simulated rails moved, and its statement of each day.

The book is a file per value date below the folder of the rails, so that a fork copies it. A line has a key: recorded
again after a crash, it counts once.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

import msgspec

from billfold.ledger.bank import Bank
from billfold.payments.wires.iso20022 import types
from billfold.payments.wires.iso20022.types import CreditTransfer, FedwireMessage, PaymentReturn

_FOLDER = "correspondent"
_LAST = "last.json"


class BookLine(msgspec.Struct, frozen=True):
    """Money that moved: cents, negative if it left the bank; the bank's own code and reference of it."""

    key: str
    amount: int
    code: str
    reference: str


class LastStatement(msgspec.Struct, frozen=True):
    """The last day with a statement: its closing balance in cents, and the custodian's and signer's last payments."""

    day: date
    closing: int = 0
    cash_no: int = 0
    signed_no: int = 0


def moved_by_wires(answers: Sequence[FedwireMessage], sent: Sequence[types.Message]) -> Iterator[BookLine]:
    """Yield what messages moved on the account of the bank: payments delivered, and payments of ours that settled."""
    ours = {each.message_id: each for each in sent}
    for message in (each.message for each in answers):
        if isinstance(message, CreditTransfer | PaymentReturn):
            yield BookLine(message.message_id, message.amount, "WIRE", message.message_id)
        elif isinstance(message, types.PaymentStatus) and message.reason is None:
            paid = ours.get(message.original.message_id)
            if isinstance(paid, CreditTransfer | PaymentReturn):
                yield BookLine(paid.message_id, -paid.amount, "WIRE", paid.message_id)


class Correspondent:
    """The books of a sandbox's correspondent bank. Without an account of the bank there are none."""

    def __init__(self, bank: Bank) -> None:
        rails = bank.settings.rails_dir or bank.settings.state_dir / "rails"
        self._folder = rails / _FOLDER
        self._is_open = bank.settings.reserve_account is not None

    async def record(self, day: date, lines: Iterable[BookLine]) -> None:
        """Record what moved on a day; what comes after the statement of its day is booked on the next one."""
        found = [each for each in lines if each.amount]
        if self._is_open and found:
            await asyncio.to_thread(self._append, day, found)

    def lines_of(self, days: Iterable[date]) -> list[BookLine]:
        """Return the lines of these days, each once."""
        texts = [path.read_bytes() for each in days if (path := self._folder / f"{each}.jsonl").exists()]
        lines = [msgspec.json.decode(line, type=BookLine) for text in texts for line in text.splitlines()]
        return list({each.key: each for each in lines}.values())

    def last(self) -> LastStatement | None:
        """Return the last statement, if there was one."""
        path = self._folder / _LAST
        return msgspec.json.decode(path.read_bytes(), type=LastStatement) if path.exists() else None

    def keep(self, last: LastStatement) -> None:
        """Remember the last statement."""
        write_atomically(self._folder / _LAST, msgspec.json.encode(last))

    def _append(self, day: date, lines: Sequence[BookLine]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        last = self.last()
        place = day if last is None else max(day, date.fromordinal(last.day.toordinal() + 1))
        with (self._folder / f"{place}.jsonl").open("ab") as out:
            out.write(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
            out.flush()
            os.fsync(out.fileno())


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
