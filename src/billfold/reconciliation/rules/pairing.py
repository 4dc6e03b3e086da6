"""Pairs the lines of a statement with what the ledger expects. Only what is unambiguous is a match.

In this order: the reference; a movement that was taken back; the total of a posting; the amount; the net of a rail that
settles in batches; a line that is taken back; the amount of an earlier break. Of what remains, a line and a movement
within one percent of each other, and of nothing else, differ in their amount.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from billfold.reconciliation.types import ExpectedLine, StatedLine

_GROSS = "WIRE"
"""The rail whose payments settle one by one: a sum of them is no match."""
_NET = "CARD"
"""The rail that settles in one net amount: if that is zero, no line shows it."""
_PERCENT = 100
_NEAR_MAX = 1_000
_Side = TypeVar("_Side", StatedLine, ExpectedLine)
_T = TypeVar("_T")
_K = TypeVar("_K")


class Pairing(NamedTuple):
    """The number of lines of this statement that match, the earlier breaks that do, and what is left."""

    matched: int
    closed: list[UUID]
    differing: list[tuple[StatedLine, ExpectedLine]]
    unknown: list[StatedLine]
    missing: list[ExpectedLine]


def pair(lines: Iterable[StatedLine], expected: Iterable[ExpectedLine]) -> Pairing:
    """Pair lines with expected movements; both include those of earlier breaks that are open."""
    table = _Table(lines, expected)
    table.match_references()
    table.drop_reversed()
    table.match_postings()
    table.match_amounts(_is_new)
    table.match_rails()
    table.match_reversals()
    table.match_amounts(_is_any)
    return table.result()


class _Table:
    """The lines and movements that are not matched yet, in order."""

    def __init__(self, lines: Iterable[StatedLine], expected: Iterable[ExpectedLine]) -> None:
        self._lines = dict.fromkeys(lines)
        self._expected = dict.fromkeys(each._replace(place=place) for place, each in enumerate(expected))
        self._matched = 0
        self._closed: list[UUID] = []
        self._differing: list[tuple[StatedLine, ExpectedLine]] = []

    def match_references(self) -> None:
        """One line and the movements that share a reference with it: equal, or different in their amount."""
        by_line = _by_reference(self._lines)
        for reference, movements in _by_reference(self._expected).items():
            lines = [each for each in by_line.get(reference, ()) if each in self._lines]
            left = [each for each in movements if each in self._expected]
            if len(lines) != 1 or not left:
                continue
            if lines[0].amount == _total(left):
                self._match(lines, left)
            elif len(left) == 1 and _is_new(lines[0]) and _is_new(left[0]):
                self._differ(lines[0], left[0])

    def drop_reversed(self) -> None:
        """Movements that were taken back under their reference, and that no line names: a wire that was rejected."""
        named = _by_reference(self._lines)
        for reference, movements in _by_reference(self._expected).items():
            left = [each for each in movements if each in self._expected]
            if reference not in named and len(left) > 1 and not _total(left):
                self._match([], left)

    def match_postings(self) -> None:
        """One line and a whole posting of several movements, if nothing else has this amount."""
        groups = _by(filter(_is_new, self._expected), lambda each: each.group)
        wholes = _by((each for each in groups.values() if len(each) > 1), _total)
        lines = _by(filter(_is_new, self._lines), lambda each: each.amount)
        singles = {each.amount for each in self._expected}
        for amount, found in wholes.items():
            fitting = [each for each in lines.get(amount, ()) if _fits(each, found[0][0])]
            if len(found) == len(fitting) == 1 and amount not in singles:
                self._match(fitting, found[0])

    def match_amounts(self, is_considered: Callable[[StatedLine | ExpectedLine], bool]) -> None:
        """As many lines as movements of one amount: of one rail if the lines name theirs. A copy of a line is left."""
        by_amount = _by(filter(is_considered, self._expected), lambda each: each.amount)
        for amount, lines in _by(filter(is_considered, self._lines), lambda each: each.amount).items():
            for _, own in sorted(_by(lines, lambda each: each.rail or "").items(), reverse=True):
                theirs = [each for each in by_amount.get(amount, ()) if each in self._expected and _fits(own[0], each)]
                if len(own) == len(theirs) or (len(own) > len(theirs) and _are_copies(own)):
                    self._match(own[: len(theirs)], theirs)

    def match_rails(self) -> None:
        """All that is left of a rail that settles in batches, if both sides have the same net; of cards, also zero."""
        lines = _by(filter(_is_new, self._lines), lambda each: each.rail)
        for rail, wanted in _by(filter(_is_new, self._expected), lambda each: each.rail).items():
            found = lines.get(rail, [])
            if rail not in {None, _GROSS} and (found or rail == _NET) and _total(found) == _total(wanted):
                self._match(found, wanted)

    def match_reversals(self) -> None:
        """A line and one that takes it back under the same reference."""
        for lines in _by_reference(self._lines).values():
            left = [each for each in lines if each in self._lines]
            if len(left) > 1 and not _total(left):
                self._match(left, [])

    def result(self) -> Pairing:
        """Return what was found, and the rest."""
        lines, expected = list(filter(_is_new, self._lines)), list(filter(_is_new, self._expected))
        if len(lines) * len(expected) <= _NEAR_MAX**2:
            for line in lines:
                near = [each for each in expected if _is_near(line, each)]
                if len(near) == 1 and sum(_is_near(other, near[0]) for other in lines) == 1:
                    self._differ(line, near[0])
        unknown, missing = list(filter(_is_new, self._lines)), list(filter(_is_new, self._expected))
        return Pairing(self._matched, self._closed, self._differing, unknown, missing)

    def _match(self, lines: Sequence[StatedLine], expected: Sequence[ExpectedLine]) -> None:
        self._matched += sum(map(_is_new, lines))
        self._closed += [line.break_id for line in lines if line.break_id is not None]
        self._closed += [movement.break_id for movement in expected if movement.break_id is not None]
        for line in lines:
            del self._lines[line]
        for movement in expected:
            del self._expected[movement]

    def _differ(self, line: StatedLine, expected: ExpectedLine) -> None:
        self._differing.append((line, expected))
        del self._lines[line]
        del self._expected[expected]


def _is_new(each: StatedLine | ExpectedLine) -> bool:
    return each.break_id is None


def _is_any(each: StatedLine | ExpectedLine) -> bool:
    del each
    return True


def _by(items: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    found = defaultdict[_K, list[_T]](list)
    for each in items:
        found[key(each)].append(each)
    return found


def _by_reference(side: Iterable[_Side]) -> dict[str, list[_Side]]:
    found = defaultdict[str, list[_Side]](list)
    for each in side:
        for reference in sorted(each.references):
            found[reference].append(each)
    return found


def _total(side: Iterable[StatedLine | ExpectedLine]) -> int:
    return sum(each.amount for each in side)


def _are_copies(lines: Sequence[StatedLine]) -> bool:
    return bool(lines[0].references) and len({each.references for each in lines}) == 1


def _fits(line: StatedLine, expected: ExpectedLine) -> bool:
    return None in {line.rail, expected.rail} or line.rail == expected.rail


def _is_near(line: StatedLine, expected: ExpectedLine) -> bool:
    return _fits(line, expected) and abs(line.amount - expected.amount) * _PERCENT <= abs(expected.amount)
