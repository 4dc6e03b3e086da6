"""What is wrong with a file, line by line."""

from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import override

SHOWN = 100
"""Mistakes of one file that are told; nobody reads more."""


class Mistake(NamedTuple):
    """One thing that is wrong, and where. Lines and columns count from 1; 0 is the whole file."""

    line: int
    columns: tuple[int, int] | None
    reason: str

    @override
    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        if self.columns:
            where += f", columns {self.columns[0]}-{self.columns[1]}"
        return f"{where}: {self.reason}"


class NachaRefused(ValueError):  # noqa: N818 - says what happened
    """Nothing of the file is taken. `mistakes` names lines and reasons, the first hundred."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes[:SHOWN])
        super().__init__("; ".join(map(str, self.mistakes[:3])))
