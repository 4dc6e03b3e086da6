"""Where the units of each owner are on the line of all units.

A holding is cut into powers of two, each of which is one leaf at a place that a secret draws: a path shows neither
whose the other units are nor how many belong to anybody.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import gcd
from typing import Final, NamedTuple

from billfold.platform.errors import InvariantError
from billfold.reports.proofs.roots.trees import PAGE_LEVELS, height_of

SPLIT: Final = -1
"""A node that has two below it; others have the number of their leaf."""
BEYOND: Final = -2
"""A node behind the last unit."""
Numbers = array  # of int, a few bytes each: a tree may have tens of millions of nodes


class Layout(NamedTuple):
    """The nodes of a tree.

    `levels` has those of each level, the lowest first, in the order of the line. `split_at` is where nodes begin that
    are split, of each level at which a page ends. Leaves are numbered by their owners, of each the largest first:
    those of an owner begin at its index in `firsts`, and `places` is where each begins. The last ones, `free`, are
    nobody's: where one begins, and the power of two of its units.
    """

    levels: Sequence[Sequence[int]]
    split_at: dict[int, Sequence[int]]
    firsts: Sequence[int]
    places: Sequence[int]
    free: Sequence[tuple[int, int]]


def lay_out(units: Sequence[int], length: int, secret: bytes) -> Layout:
    """Return the tree over a line, the units of each owner at places of their own. Raises InvariantError."""
    rest, height = sum(units), height_of(length)
    if rest > length or min(units, default=0) < 0:
        raise InvariantError("Units do not fit on the line.", units=rest, length=length)
    firsts = array("q", accumulate((each.bit_count() for each in units), initial=0))
    places, free = array("q", bytes(8 * firsts[-1])), list[tuple[int, int]]()
    levels: list[Sequence[int]] = []
    split_at: dict[int, Sequence[int]] = {}
    begins, owned = [0], _leaves_by_power(units, height)
    for power in range(height, -1, -1):
        size, leaves = 1 << power, owned.pop()
        whole = bisect_right(begins, length - size)
        nodes = array("i", [SPLIT]) * len(begins)
        for leaf, at in zip(leaves, _draw(len(leaves), whole, secret + bytes([power])), strict=True):
            nodes[at] = leaf
            places[leaf] = begins[at]
        rest -= size * len(leaves)
        for at in _last_split(nodes, whole, whole - len(leaves) - -(-rest // size)):
            nodes[at] = firsts[-1] + len(free)
            free.append((begins[at], power))
        for at in range(whole, len(begins)):
            nodes[at] = SPLIT if begins[at] < length else BEYOND
        split = [begin for begin, node in zip(begins, nodes, strict=True) if node == SPLIT]
        if power % PAGE_LEVELS == 0:
            split_at[power] = array("q", split)
        begins = [each for begin in split for each in (begin, begin + size // 2)]
        levels.append(nodes)
    return Layout(levels[::-1], split_at, firsts, places, free)


def one_each(count: int) -> Layout:
    """Return the tree over a line on which each owner has one unit, in their order."""
    levels, split_at, height = list[Sequence[int]](), dict[int, Sequence[int]](), height_of(count)
    for power in range(height + 1):
        begun = -(-count >> power)
        missing = begun % 2 if power < height else 1 - begun
        levels.append(array("i", [*([SPLIT] * begun if power else range(count)), *[BEYOND] * missing]))
        if power % PAGE_LEVELS == 0:
            split_at[power] = range(0, begun << power, 1 << power)
    return Layout(levels, split_at, range(count + 1), range(count), ())


def _leaves_by_power(units: Sequence[int], height: int) -> list[Numbers[int]]:
    found, leaf = [array("i") for _ in range(height + 1)], 0
    for held in units:
        left = held
        while left:
            power = left.bit_length() - 1
            found[power].append(leaf)
            leaf += 1
            left ^= 1 << power
    return found


def _draw(count: int, places: int, secret: bytes) -> Sequence[int]:
    """Return so many of the places."""
    if not count:
        return ()
    drawn = hashlib.blake2b(b"place", key=hashlib.sha256(secret).digest(), digest_size=64).digest()
    at, step = int.from_bytes(drawn[:32]) % places, int.from_bytes(drawn[32:]) % places or 1
    while gcd(step, places) != 1:
        step += 1
    return [each % places for each in range(at, at + step * count, step)]


def _last_split(nodes: Sequence[int], end: int, count: int) -> list[int]:
    """Return the last places before `end` that nobody has, so many of them, first to last."""
    found: list[int] = []
    while len(found) < count:
        end -= 1
        if nodes[end] == SPLIT:
            found.append(end)
    return found[::-1]
