"""Lines of a statement and expected movements: what is a match, and what is not."""

from typing import Any
from uuid import UUID

import pytest

from billfold.reconciliation.rules.pairing import pair
from billfold.reconciliation.types import ExpectedLine, StatedLine


def lines_of(text, made):
    """Return lines or movements: an amount, `@rail`, `#reference`, `/group`, `!` for one of an open break."""
    found: list[Any] = []
    for nth, word in enumerate(text.split(), start=1):
        amount = int("".join(each for each in word.split("@")[0].split("#")[0].split("/")[0] if each in "-0123456789"))
        rail = word.split("@")[1].split("#")[0].split("/")[0].rstrip("!") if "@" in word else None
        names = frozenset({word.split("#")[1].split("/")[0].rstrip("!")} if "#" in word else ())
        old: dict[str, Any] = (
            {"break_id": UUID(int=nth + (0 if made is StatedLine else 100))} if word.endswith("!") else {}
        )
        if made is StatedLine:
            found.append(StatedLine(nth, amount, names, rail, **old))
        else:
            group = word.split("/")[1].rstrip("!") if "/" in word else f"own {nth}"
            found.append(ExpectedLine(f"m{nth}", amount, names, rail, group=group, **old))
    return found


CASES = {
    "a reference resolves equal amounts": ("100#a 100", "100#a", 1, [], [100], []),
    "by reference another amount differs": ("101#a", "100#a", 0, [(101, 100)], [], []),
    "one line pays several movements of its reference": ("300#a", "100#a 200#a", 1, [], [], []),
    "an amount is a match": ("100", "100", 1, [], [], []),
    "the direction counts": ("-100", "100", 0, [], [-100], [100]),
    "two lines of one amount for one movement are ambiguous": ("100 100", "100", 0, [], [100, 100], [100]),
    "a line that is there twice is one too many": ("100#x 100#x", "100", 1, [], [100], []),
    "so is one of a known reference": ("100#a 100#a 100#a", "100#a", 1, [], [100, 100], []),
    "as many lines as movements of one amount match": ("100 100", "100 100", 2, [], [], []),
    "the rail resolves equal amounts": ("100@ACH 100@WIRE 100@WIRE", "100@ACH 100@WIRE", 1, [], [100, 100], [100]),
    "another rail is no match": ("100@ACH", "100@WIRE", 0, [], [100], [100]),
    "a line without a rail fits any": ("100", "100@WIRE", 1, [], [], []),
    "a whole posting is one line": ("300@WIRE", "100@WIRE/p 200@WIRE/p", 1, [], [], []),
    "its payments are lines": ("100@WIRE 200@WIRE", "100@WIRE/p 200@WIRE/p", 2, [], [], []),
    "a posting and a payment of one amount are ambiguous": (
        "300 100",
        "100/p 200/p 300/q",
        2,
        [],
        [],
        [200],
    ),
    "a batch rail settles its net": ("-50@CARD", "100@CARD/p -150@CARD/q", 1, [], [], []),
    "cards that net to zero have no line": ("-9@CARD", "800@CARD -800@CARD -9@CARD", 1, [], [], []),
    "entries of ACH that net to zero have lines": ("", "800@ACH -800@ACH", 0, [], [], [800, -800]),
    "windows of a batch rail add up": ("70@ACH 80@ACH", "50@ACH/p 60@ACH/p 40@ACH/p", 2, [], [], []),
    "wires do not add up": ("70@WIRE 80@WIRE", "50@WIRE/p 100@WIRE/p", 0, [], [70, 80], [50, 100]),
    "an unknown line stays one": ("100 777", "100", 1, [], [777], []),
    "a missing line stays one": ("100", "100 555", 1, [], [], [555]),
    "a cent off differs": ("100001 500", "100000 500", 1, [(100001, 100000)], [], []),
    "two that are near are not told apart": ("1001 999", "1000", 0, [], [1001, 999], [1000]),
    "a wire that was rejected is on no statement": ("100", "-100#a 100#a 100#b", 1, [], [], []),
    "one that settled and came back has two lines": ("-100#a 100#b", "-100#a 100#b", 2, [], [], []),
    "a line and its reversal cancel out": ("100#a -100#a", "", 2, [], [], []),
    "without a reference nothing is a reversal": ("100 -100", "", 0, [], [100, -100], []),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_is_unambiguous_is_paired(case):
    stated, expected, matched, differing, unknown, missing = CASES[case]
    found = pair(lines_of(stated, StatedLine), lines_of(expected, ExpectedLine))
    assert found.matched == matched
    assert [(line.amount, movement.amount) for line, movement in found.differing] == differing
    assert [each.amount for each in found.unknown] == unknown
    assert [each.amount for each in found.missing] == missing


LATER = {
    "a missing line comes a day later": ("100", "100!", 1, [101]),
    "an unknown line is booked a day later": ("100!", "100", 0, [1]),
    "a difference is taken back under its reference": ("1#a! -1#a", "", 1, [1]),
    "another amount closes nothing": ("101", "100!", 0, []),
    "two that would fit close nothing": ("100", "100! 100!", 0, []),
    "today's movement comes first": ("100", "100 100!", 1, []),
    "both rests of earlier days cancel out": ("100!", "100!", 0, [1, 101]),
    "a payment is taken back a day later": ("", "100#a! -100#a", 0, [101]),
    "another rail closes nothing": ("100@ACH", "100@WIRE!", 0, []),
}


@pytest.mark.parametrize("case", LATER)
def test_a_break_closes_itself_when_its_difference_is_gone(case):
    stated, expected, matched, closed = LATER[case]
    found = pair(lines_of(stated, StatedLine), lines_of(expected, ExpectedLine))
    assert (found.matched, [each.int for each in found.closed]) == (matched, closed)
    assert found.differing == []
