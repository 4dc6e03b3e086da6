"""What is wrong with a file of messages."""

from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import override

SHOWN = 100
"""Mistakes of one file that are told."""


class Mistake(NamedTuple):
    """One thing that is wrong: the line, counted from 1, the element and the reason."""

    line: int
    element: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"line {self.line}, {self.element}: {self.reason}"


class FedwireRefused(ValueError):  # noqa: N818 - says what happened
    """Nothing of the file is taken. `mistakes` names lines and reasons, the first hundred."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes[:SHOWN])
        super().__init__("; ".join(map(str, self.mistakes[:3])))
