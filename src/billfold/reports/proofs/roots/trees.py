"""Trees over units: each unit has one place, so none can be shown to two owners, and no sum can be made smaller.

The leaves of a tree tile the line of all units. A holding is cut into powers of two, each of which is one leaf at a
place that a secret draws: a path shows neither whose the other units are nor how many belong to anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import gcd
from typing import Final
from uuid import UUID

from billfold.platform.errors import InvariantError
from billfold.reports.proofs.roots.types import Page

SALT_BYTES: Final = 32
_PAGE: Final = 8
"""A page is as high as so many levels."""
_TILE: Final = 1 + 32
_FREE: Final = -1
BEYOND: Final = hashlib.sha256(b"\x02").digest()
"""Stands for places behind the last unit."""
_sha256 = hashlib.sha256
Tile = tuple[int, int, int]
"""Where it begins, the power of two of its units, and the index of its owner; `_FREE` for units that nobody owns."""


def leaf_hash(salt: bytes, leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return _sha256(b"\x00" + salt + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two that are side by side."""
    return _sha256(b"\x01" + left + right).digest()


def salt_of(secret: bytes, customer_id: UUID) -> bytes:
    """Return what hides the leaves of a customer."""
    return hashlib.blake2b(customer_id.bytes, key=secret, digest_size=SALT_BYTES).digest()


def height_of(length: int) -> int:
    """Return how many levels a line of so many units needs."""
    return max(length - 1, 0).bit_length()


def lay_out(units: Sequence[int], length: int, secret: bytes) -> list[Tile]:
    """Return the tiles of the line, first to last. Raises InvariantError for more units than there are."""
    rest, height = sum(units), height_of(length)
    if rest > length or min(units, default=0) < 0:
        raise InvariantError("Units do not fit on the line.", units=rest, length=length)
    tiles: list[Tile] = []
    free: list[int] = []
    for power, owners in zip(range(height, -1, -1), reversed(_by_power(units, height)), strict=True):
        size = 1 << power
        if length & size:
            free.append(length >> power + 1 << power + 1)
        slots = _draw(owners, len(free), secret + bytes([power]))
        rest -= size * len(owners)
        kept, below = -(-rest // size), list[int]()
        for begins, owner in zip(free, slots, strict=True):
            if owner == _FREE and kept > 0:
                kept -= 1
                below += (begins, begins + size // 2)
            else:
                tiles.append((begins, power, owner))
        free = below
    tiles.sort()
    return tiles


def pages_of(tiles: Sequence[tuple[int, int, bytes]], length: int) -> tuple[bytes, list[Page]]:
    """Return the root of a tree, and its pages. A tile has here the hash of its leaf."""
    tree = _Pages(height_of(length))
    for begins, power, leaf in tiles:
        tree.add(begins, power, leaf)
    begins, end = length, 1 << tree.height
    while begins < end:
        power = (begins & -begins).bit_length() - 1 if begins else tree.height
        tree.add(begins, power, BEYOND)
        begins += 1 << power
    return tree.close(), tree.pages


def pages_above(begins: int, power: int, height: int) -> list[tuple[int, int]]:
    """Return height and number of the pages that a way up from a tile crosses, the lowest first."""
    top = max(1, -(-height // _PAGE)) * _PAGE
    lowest = min((power // _PAGE + 1) * _PAGE, top)
    return [(each, begins >> each) for each in range(lowest, top + 1, _PAGE)]


def way_up(begins: int, power: int, height: int, *, pages: Sequence[bytes]) -> list[bytes]:
    """Return the hashes beside the way from a tile to the root; `pages` are those of `pages_above`."""
    path: list[bytes] = []
    for tiles, (top, number) in zip(pages, pages_above(begins, power, height), strict=True):
        nodes = _nodes(tiles, number << top)
        while power < min(top, height):
            path.append(nodes[(begins >> power ^ 1) << power, power])
            power += 1
    return path


def root_of_page(tiles: bytes) -> bytes:
    """Return the hash of all that a page covers."""
    stack: list[tuple[int, bytes]] = []
    for at in range(0, len(tiles), _TILE):
        power, node = tiles[at], tiles[at + 1 : at + _TILE]
        while stack and stack[-1][0] == power:
            node = node_hash(stack.pop()[1], node)
            power += 1
        stack.append((power, node))
    return stack[0][1] if len(stack) == 1 else b""


class _Pages:
    """A tree that is written from left to right: a page is kept as soon as it is full."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.pages: list[Page] = []
        count = max(1, -(-height // _PAGE))
        self._open = [bytearray() for _ in range(count)]
        self._numbers = [0] * count

    def add(self, begins: int, power: int, node: bytes) -> None:
        level = min(power // _PAGE, len(self._open) - 1)
        for each, number in enumerate(self._numbers):
            if number == begins >> (each + 1) * _PAGE:
                break  # and so are those above
            self._turn(each, begins >> (each + 1) * _PAGE)
        self._open[level].append(power)
        self._open[level] += node

    def _turn(self, level: int, number: int) -> None:
        """Keep a page and begin the next."""
        tiles, height = bytes(self._open[level]), (level + 1) * _PAGE
        if tiles:
            self.pages.append(Page(height, self._numbers[level], tiles))
            self._open[level + 1].append(height)
            self._open[level + 1] += root_of_page(tiles)
        self._open[level] = bytearray()
        self._numbers[level] = number

    def close(self) -> bytes:
        last = len(self._open) - 1
        for level in range(last):
            self._turn(level, 0)
        tiles = bytes(self._open[last])
        self.pages.append(Page((last + 1) * _PAGE, 0, tiles))
        return root_of_page(tiles)


def _nodes(tiles: bytes, begins: int) -> dict[tuple[int, int], bytes]:
    """Return every node of a page by where it begins and its power."""
    nodes: dict[tuple[int, int], bytes] = {}
    stack: list[tuple[int, int, bytes]] = []
    for at in range(0, len(tiles), _TILE):
        power, node, start = tiles[at], tiles[at + 1 : at + _TILE], begins
        begins += 1 << power
        nodes[start, power] = node
        while stack and stack[-1][1] == power:
            start, _, left = stack.pop()
            node, power = node_hash(left, node), power + 1
            nodes[start, power] = node
        stack.append((start, power, node))
    return nodes


def _by_power(units: Sequence[int], height: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(height + 1)]
    for owner, held in enumerate(units):
        left = held
        while left:
            lowest = left & -left
            found[lowest.bit_length() - 1].append(owner)
            left ^= lowest
    return found


def _draw(owners: Sequence[int], count: int, secret: bytes) -> list[int]:
    """Return who gets each of so many places."""
    slots = [_FREE] * count
    if owners:
        drawn = hashlib.blake2b(b"place", key=hashlib.sha256(secret).digest(), digest_size=64).digest()
        at, step = int.from_bytes(drawn[:32]) % count, int.from_bytes(drawn[32:]) % count or 1
        while gcd(step, count) != 1:
            step += 1
        for owner in owners:
            slots[at] = owner
            at = (at + step) % count
    return slots
