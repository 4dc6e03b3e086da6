"""One thing in each queue that always fails: it is set apart, and the bank does everything of the others.

A receiver that refuses every event, a mailbox that refuses every e-mail, files that cannot be read, and a customer
whose due work raises an error. The card network puts odd lines into its files.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from billfold.payments.files.exchange import ExchangeFolders
from billfold.wiring import open_bank
from simulation.oracles import require

UNREADABLE, GARBAGE = "unreadable", "garbage"
DEAF_HOOK, LOST_MAILBOX = "https://deaf.example/hook", "ben@team0.example"


class Poison:
    """`apart` has the ids of what fails: customers, subscriptions and e-mails.

    Due work fails once `is_active`: the sandbox's walk of the clock stops at the first customer whose work fails.
    """

    def __init__(self, rails: Path) -> None:
        self.apart: set[UUID] = set()
        self.is_active, self.failed = False, 0
        self._folders = [rails / rail for rail in ("ach", "wire", "card")]
        wiring: Any = open_bank
        folders: Any = ExchangeFolders
        catch_up, read = wiring.catch_up, folders.read

        def catch_up_or_fail(book: Any, ctx: Any) -> int:
            done: int = catch_up(book, ctx)
            if done and self.is_active and book.customer_id in self.apart:
                self.failed += 1
                raise ValueError("the due work of this customer always fails")
            return done

        async def read_or_fail(exchange: ExchangeFolders, name: str) -> bytes | None:
            if name.startswith(UNREADABLE):
                raise OSError(errno.EIO, "Input/output error")
            content: bytes | None = await read(exchange, name)
            return content

        wiring.catch_up, folders.read = catch_up_or_fail, read_or_fail

    def put_files(self) -> None:
        """Leave files in the inbox of each rail that no program can read, and that no rail sent."""
        for folder in self._folders:
            (folder / "inbox").mkdir(parents=True, exist_ok=True)
            (folder / "inbox" / UNREADABLE).write_bytes(b"a sector that is lost")
            (folder / "inbox" / GARBAGE).write_bytes(bytes(range(256)))

    def files_left(self) -> int:
        """Return how many files wait that can be read."""
        return sum(not each.name.startswith((".", UNREADABLE)) for each in self._files("inbox"))

    def _files(self, box: str) -> Sequence[Path]:
        return [each for folder in self._folders for each in (folder / box).glob("*")]

    def check(self) -> None:
        """Check that what cannot be read is still there, and what is nonsense was refused."""
        require(
            len([each for each in self._files("inbox") if each.name == UNREADABLE]) == len(self._folders),
            "a file that cannot be read is gone",
        )
        refused = [each for each in self._files("refused") if each.name == GARBAGE]
        require(len(refused) == len(self._folders), f"only {len(refused)} files of nonsense are refused")
