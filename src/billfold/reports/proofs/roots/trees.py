"""Trees over units: each unit has one position, so none can be shown to two owners, and no sum can be understated.

The leaves of a tree tile the line of all units. A holding is split into powers of two, each of which is one leaf at a
position drawn with a secret: a path reveals neither the owners of other units nor the size of any holding. A tree is
hashed from the lowest level up, one stretch of the line after the other, and stored in pages of eight levels.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import gcd
from typing import Final, NamedTuple
from uuid import UUID

from billfold.platform.errors import InvariantError
from billfold.reports.proofs.roots.types import Page

SALT_BYTES: Final = 32
PAGE_LEVELS: Final = 8
"""Number of levels in a page."""
_TILE: Final = 1 + 32
BEYOND_HASH: Final = hashlib.sha256(b"\x02").digest()
"""The hash of positions beyond the last unit."""
_sha256 = hashlib.sha256
Nodes = dict[tuple[int, int], bytes]
"""Hashes by (first unit, size as a power of two)."""


def leaf_hash(salt: bytes, leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return _sha256(b"\x00" + salt + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two adjacent nodes."""
    return _sha256(b"\x01" + left + right).digest()


def salt_of(secret: bytes, customer_id: UUID) -> bytes:
    """Return the salt that hides the leaves of a customer."""
    return hashlib.blake2b(customer_id.bytes, key=secret, digest_size=SALT_BYTES).digest()


def height_of(length: int) -> int:
    """Return the number of levels for a line of `length` units."""
    return max(length - 1, 0).bit_length()


def pages_above(begins: int, power: int, height: int) -> list[tuple[int, int]]:
    """Return height and number of the pages on the path from a tile to the root, lowest first."""
    top = max(1, -(-height // PAGE_LEVELS)) * PAGE_LEVELS
    lowest = min((power // PAGE_LEVELS + 1) * PAGE_LEVELS, top)
    return [(each, begins >> each) for each in range(lowest, top + 1, PAGE_LEVELS)]


def way_up(begins: int, power: int, height: int, *, pages: Sequence[Nodes]) -> list[bytes]:
    """Return the sibling hashes on the way from a tile to the root; `pages` are those of `pages_above`."""
    path: list[bytes] = []
    for nodes, (top, _) in zip(pages, pages_above(begins, power, height), strict=True):
        while power < min(top, height):
            path.append(nodes[(begins >> power ^ 1) << power, power])
            power += 1
    return path


def root_of_page(tiles: bytes) -> bytes:
    """Return the hash of everything that a page covers."""
    stack: list[tuple[int, bytes]] = []
    for at in range(0, len(tiles), _TILE):
        power, node = tiles[at], tiles[at + 1 : at + _TILE]
        while stack and stack[-1][0] == power:
            node = node_hash(stack.pop()[1], node)
            power += 1
        stack.append((power, node))
    return stack[0][1] if len(stack) == 1 else b""


def nodes_of(tiles: bytes, begins: int) -> Nodes:
    """Return every node of a page that starts at `begins`."""
    nodes: Nodes = {}
    stack: list[tuple[int, int, bytes]] = []
    for at, tile in zip(range(1, len(tiles), _TILE), tiles[::_TILE], strict=True):
        power, node, start = tile, tiles[at : at + 32], begins
        begins += 1 << power
        nodes[start, power] = node
        while stack and stack[-1][1] == power:
            start, _, left = stack.pop()
            node, power = _sha256(b"\x01" + left + node).digest(), power + 1
            nodes[start, power] = node
        stack.append((start, power, node))
    return nodes


SPLIT: Final = -1
"""A node that has two children; other nodes have the number of their leaf."""
BEYOND: Final = -2
"""A node beyond the last unit."""
Numbers = array  # of int, a few bytes each: a tree may have tens of millions of nodes


class Layout(NamedTuple):
    """The nodes of a tree.

    `levels` has the nodes of each level, lowest first, in the order of the line. `split_at` has the starts of split
    nodes, for each level at which a page ends. Leaves are numbered by owner, largest first: an owner's leaves begin at
    its index in `firsts`, and `places` has the start of each. The last ones, `free`, have no owner: where one begins,
    and its size as a power of two.
    """

    levels: Sequence[Sequence[int]]
    split_at: dict[int, Sequence[int]]
    firsts: Sequence[int]
    places: Sequence[int]
    free: Sequence[tuple[int, int]]


def lay_out(units: Sequence[int], length: int, secret: bytes) -> Layout:
    """Return the tree over a line, with distinct positions for the units of each owner. Raises InvariantError."""
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
        for leaf, at in zip(leaves, _draw_positions(len(leaves), whole, secret + bytes([power])), strict=True):
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
    """Return the tree over a line on which each owner has one unit, in order."""
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


def _draw_positions(count: int, places: int, secret: bytes) -> Sequence[int]:
    """Draw `count` of the positions."""
    if not count:
        return ()
    drawn = hashlib.blake2b(b"place", key=hashlib.sha256(secret).digest(), digest_size=64).digest()
    at, step = int.from_bytes(drawn[:32]) % places, int.from_bytes(drawn[32:]) % places or 1
    while gcd(step, places) != 1:
        step += 1
    return [each % places for each in range(at, at + step * count, step)]


def _last_split(nodes: Sequence[int], end: int, count: int) -> list[int]:
    """Return the last `count` free positions before `end`, first to last."""
    found: list[int] = []
    while len(found) < count:
        end -= 1
        if nodes[end] == SPLIT:
            found.append(end)
    return found[::-1]


_Hashed = tuple[list[bytes], list[bytes]]
"""Hashes of nodes, and their tiles in the page above."""


def pages_of(layout: Layout, leaf_hash: Callable[[int], bytes], *, level: int, count: int) -> Iterator[list[Page]]:
    """Yield the pages below `count` nodes of a level at a time, and finally those above, the top one last.

    `leaf_hash` returns the hash of a leaf by its number.
    """
    climb = _TreeHasher(layout, leaf_hash)
    level = min(level, climb.height)
    hashes, tiles = list[bytes](), list[bytes]()
    for _ in range(0, len(layout.levels[level]), count):
        found = climb.nodes(level, count)
        hashes += found[0]
        tiles += found[1]
        if level < climb.height:
            yield climb.take()
    climb.known = (level, (hashes, tiles))
    _, (root,) = climb.nodes(climb.height, 1)
    top = max(PAGE_LEVELS, -(-climb.height // PAGE_LEVELS) * PAGE_LEVELS)
    yield [*climb.take(), Page(top, 0, root)]


class _TreeHasher:
    """Hashes nodes in the order of the line; each node is used once."""

    def __init__(self, layout: Layout, leaf_hash: Callable[[int], bytes]) -> None:
        self.height = len(layout.levels) - 1
        self.known: tuple[int, _Hashed] | None = None
        self._layout, self._leaf_hash = layout, leaf_hash
        self._at = [0] * len(layout.levels)
        self._pages: list[Page] = []
        self._paged = dict.fromkeys(layout.split_at, 0)

    def take(self) -> list[Page]:
        """Return the pages completed since the last call."""
        taken, self._pages = self._pages, []
        return taken

    def nodes(self, power: int, count: int) -> _Hashed:
        """Return the next nodes of a level."""
        if self.known is not None and power == self.known[0]:
            return self.known[1]
        at = self._at[power]
        nodes = self._layout.levels[power][at : at + count]
        self._at[power] += len(nodes)
        below = self._below(power, nodes.count(SPLIT))
        split, mark, leaf_hash = zip(*below, strict=True), bytes([power]), self._leaf_hash
        hashes, tiles = list[bytes](), list[bytes]()
        for node in nodes:
            if node == SPLIT:
                node_hash, tile = next(split)
            else:
                node_hash = BEYOND_HASH if node == BEYOND else leaf_hash(node)
                tile = mark + node_hash
            hashes.append(node_hash)
            tiles.append(tile)
        return hashes, tiles

    def _below(self, power: int, count: int) -> _Hashed:
        """Return the next split nodes of a level, computed from their children."""
        if not count:
            return [], []
        hashes, tiles = self.nodes(power - 1, 2 * count)
        found = [
            _sha256(b"\x01" + left + right).digest() for left, right in zip(hashes[::2], hashes[1::2], strict=True)
        ]
        joined = [left + right for left, right in zip(tiles[::2], tiles[1::2], strict=True)]
        if power % PAGE_LEVELS or power == self.height:
            return found, joined
        first = self._paged[power]
        self._paged[power] += count
        begins = self._layout.split_at[power][first : first + count]
        self._pages += [Page(power, begin >> power, each) for begin, each in zip(begins, joined, strict=True)]
        mark = bytes([power])
        return found, [mark + each for each in found]
