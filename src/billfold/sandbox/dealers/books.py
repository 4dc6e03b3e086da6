"""The books of one simulated dealer, in a file of its own: sequence numbers, messages, orders and executions."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from billfold.trading.fix.codec import Message
from billfold.trading.fix.session import SESSION_TYPES, SentMessage

DEALERS: Final[Mapping[str, int]] = {"harbor": 1, "northgate": 2}
"""The dealers, and the spread of each in hundredths of a percent of the price."""


class Behavior(StrEnum):
    """A misbehavior with the next request or order; CORRECT and BUST are done to the last execution at once.

    DOWN cuts the session, and refuses others until the dealer is asked for something else or for nothing.
    """

    PARTIAL_FILL = "PARTIAL_FILL"
    SLOW = "SLOW"
    SILENT = "SILENT"
    REJECT = "REJECT"
    QUOTE_EXPIRES = "QUOTE_EXPIRES"
    DISCONNECT = "DISCONNECT"
    WRONG_MONEY = "WRONG_MONEY"
    FAR_PRICE = "FAR_PRICE"
    FILL_TWICE = "FILL_TWICE"
    FILL_AFTER_CANCEL = "FILL_AFTER_CANCEL"
    DOWN = "DOWN"
    CORRECT = "CORRECT"
    BUST = "BUST"


class DealerExecution(msgspec.Struct, frozen=True, kw_only=True):
    """An execution of a dealer: FILL, CORRECTION or BUST of `corrects`. Face in dollars, money in cents and as text."""

    dealer: str
    reference: str
    kind: str
    order_id: str
    side: str
    cusip: str
    face: int
    price_micros: int
    price: str
    money: int
    amount: str
    settles_on: str
    traded_on: str = ""
    corrects: str | None = None


class BookedOrder(msgspec.Struct, kw_only=True):
    """An order that a dealer received, by its id: the fields that it repeats, and its state (39)."""

    order_id: str
    fields: dict[int, str]
    face: int
    filled: int = 0
    status: str = "0"


class _Line(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A line of the file: what has changed."""

    next_in: int = 0
    next_out: int = 0
    sent: tuple[int, str, str] | None = None
    order: BookedOrder | None = None
    execution: DealerExecution | None = None


_BEHAVIOR, _BOOKS = "next", "books.jsonl"


class DealerBooks:
    """The books, read from the file at the start; every change is a line that is written before it counts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder, self._path = folder, folder / _BOOKS
        self.next_in = self.next_out = 1
        self.orders: dict[str, BookedOrder] = {}
        self.executions: list[DealerExecution] = []
        self._sent: dict[int, SentMessage] = {}
        lines, whole = _read_lines(self._path)
        for line in lines:
            self._apply(line)
        self._file = self._path.open("ab")
        self._file.truncate(whole)

    def _apply(self, line: _Line) -> None:
        self.next_in, self.next_out = line.next_in or self.next_in, line.next_out or self.next_out
        if line.sent is not None:
            self._sent[line.sent[0]] = SentMessage(*line.sent)
        if line.order is not None:
            self.orders[line.order.order_id] = line.order
        if line.execution is not None:
            self.executions.append(line.execution)

    def _keep(self, **changes: object) -> None:
        line = msgspec.convert(changes, _Line, from_attributes=True)
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        self._apply(line)

    def keep(self, order: BookedOrder, execution: DealerExecution | None = None) -> None:
        """Keep an order as it is now, and its new execution."""
        self._keep(order=order, execution=execution)

    async def keep_out(self, kind: str, frame: bytes, *, about: str | None) -> None:
        """Keep what is sent next."""
        del about
        is_kept = kind not in SESSION_TYPES
        sent = (self.next_out, kind, frame.decode()) if is_kept else None
        self._keep(next_out=self.next_out + 1, sent=sent)

    async def keep_in(self, message: Message, *, until: int) -> None:
        """Keep the number of a message."""
        del message
        self._keep(next_in=until)

    async def reset(self) -> None:
        """Begin both numbers at 1 again; what was sent before is not repeated any more."""
        self._sent.clear()
        self._keep(next_in=1, next_out=1)

    async def list_sent(self, first: int, last: int, types: Collection[str]) -> Sequence[SentMessage]:
        """Return messages of some types that were sent, in their order."""
        sent = (self._sent[seq] for seq in sorted(self._sent) if first <= seq <= last)
        return [each for each in sent if each.type in types]

    def has_pending_behavior(self, behavior: Behavior) -> bool:
        """Tell whether this is the behavior that was asked for."""
        return pending_behavior(self._folder) == behavior

    def take_behavior(self, *wanted: Behavior) -> Behavior | None:
        """Return the behavior that was asked for, once, if it is one of these."""
        found = next((each for each in wanted if self.has_pending_behavior(each)), None)
        if found is not None:
            ask_behavior(self._folder, None)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def ask_behavior(folder: Path, behavior: Behavior | None) -> None:
    """Ask a dealer for a behavior, or for none, in place of one that it has not shown yet."""
    if behavior is None:
        (folder / _BEHAVIOR).unlink(missing_ok=True)
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f"{_BEHAVIOR}.{os.getpid()}"
    draft.write_text(behavior)
    draft.replace(folder / _BEHAVIOR)


def pending_behavior(folder: Path) -> str | None:
    """Return the behavior that a dealer has not shown yet, or that lasts."""
    with suppress(FileNotFoundError):
        return (folder / _BEHAVIOR).read_text().strip()
    return None


def read_executions(folder: Path) -> list[DealerExecution]:
    """Return the executions of a dealer, as its own books have them."""
    lines, _ = _read_lines(folder / _BOOKS)
    return [each.execution for each in lines if each.execution is not None]


def _read_lines(path: Path) -> tuple[list[_Line], int]:
    """Return the lines of a file, without one that a kill cut off, and their length."""
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    return [msgspec.json.decode(line, type=_Line) for line in whole.splitlines()], len(whole)
