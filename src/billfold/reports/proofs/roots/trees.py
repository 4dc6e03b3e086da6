"""Trees over units: each unit has one place, so none can be shown to two owners, and no sum can be made smaller.

The leaves of a tree tile the line of all units. It is kept in pages of eight levels.
"""

import hashlib
from collections.abc import Sequence
from typing import Final
from uuid import UUID

SALT_BYTES: Final = 32
PAGE_LEVELS: Final = 8
"""A page is as high as so many levels."""
_TILE: Final = 1 + 32
BEYOND: Final = hashlib.sha256(b"\x02").digest()
"""Stands for places behind the last unit."""
_sha256 = hashlib.sha256
Nodes = dict[tuple[int, int], bytes]
"""Hashes by where they begin, and the power of two of their units."""


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


def pages_above(begins: int, power: int, height: int) -> list[tuple[int, int]]:
    """Return height and number of the pages that a way up from a tile crosses, the lowest first."""
    top = max(1, -(-height // PAGE_LEVELS)) * PAGE_LEVELS
    lowest = min((power // PAGE_LEVELS + 1) * PAGE_LEVELS, top)
    return [(each, begins >> each) for each in range(lowest, top + 1, PAGE_LEVELS)]


def way_up(begins: int, power: int, height: int, *, pages: Sequence[Nodes]) -> list[bytes]:
    """Return the hashes beside the way from a tile to the root; `pages` are those of `pages_above`."""
    path: list[bytes] = []
    for nodes, (top, _) in zip(pages, pages_above(begins, power, height), strict=True):
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


def nodes_of(tiles: bytes, begins: int) -> Nodes:
    """Return every node of a page, which begins there."""
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
