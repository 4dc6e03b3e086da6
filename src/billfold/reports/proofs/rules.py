"""Which figures of a text are not those that were signed."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import pairwise
from typing import Final

from billfold.reports.proofs.types import Figure

_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_DIGITS: Final = b"0123456789"
_BLOCK_BYTES_MAX: Final = 20_000
"""In how long a text its original is searched: what is hashed grows with the square of it."""


def changed_figures(text: str, figures: Sequence[Figure]) -> Iterator[str]:
    """Name each signed figure that the text does not show where it should: they are in its order."""
    signed = [(each.label, number) for each in figures for number in _NUMBER.findall(each.value)]
    shown = _NUMBER.findall(text)
    matcher = SequenceMatcher(None, [number for _, number in signed], shown, autojunk=False)
    for change, first, last, from_, to in matcher.get_opcodes():
        if change not in {"replace", "delete"}:
            continue
        candidates = shown[from_:to]
        for label, number in signed[first:last]:
            nearest = get_close_matches(number, candidates, n=1, cutoff=0.5)
            if nearest:
                del candidates[: candidates.index(nearest[0]) + 1]
                yield f"{label} reads {nearest[0]}; the bank signed {number}."
            else:
                yield f"{label} does not read {number}, as the bank signed."


def original_of(block: bytes, mark: str) -> bytes | None:
    """Return the text that differs from this one in a digit, or in two that were exchanged, and has the mark."""
    if len(block) > _BLOCK_BYTES_MAX:
        return None
    return next((each for each in _variants(block) if hashlib.sha256(each).hexdigest().startswith(mark)), None)


def _variants(block: bytes) -> Iterator[bytes]:
    places = [at for at, byte in enumerate(block) if byte in _DIGITS]
    for at in places:
        for digit in _DIGITS:
            if digit != block[at]:
                yield block[:at] + bytes([digit]) + block[at + 1 :]
    for left, right in pairwise(places):
        if right - left <= 2 and block[left] != block[right]:  # noqa: PLR2004 - a point may be between them
            changed = bytearray(block)
            changed[left], changed[right] = block[right], block[left]
            yield bytes(changed)
