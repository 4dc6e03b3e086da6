"""The pages of a tree, hashed from the lowest level up, a stretch of the line after the other."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

from billfold.reports.proofs.roots.places import BEYOND, SPLIT, Layout
from billfold.reports.proofs.roots.trees import BEYOND as BEYOND_HASH
from billfold.reports.proofs.roots.trees import PAGE_LEVELS
from billfold.reports.proofs.roots.types import Page

_sha256: Final = hashlib.sha256
Nodes = tuple[list[bytes], list[bytes]]
"""Hashes of nodes, and what a page above says of each: its tiles."""


def pages_of(layout: Layout, leaf_hash: Callable[[int], bytes], *, level: int, count: int) -> Iterator[list[Page]]:
    """Return the pages below so many nodes of a level at a time, and last those above, of which the top is the last.

    `leaf_hash` returns the hash of a leaf by its number.
    """
    climb = _Climb(layout, leaf_hash)
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


class _Climb:
    """Hashes nodes in the order of the line; each is used once."""

    def __init__(self, layout: Layout, leaf_hash: Callable[[int], bytes]) -> None:
        self.height = len(layout.levels) - 1
        self.known: tuple[int, Nodes] | None = None
        self._layout, self._leaf_hash = layout, leaf_hash
        self._at = [0] * len(layout.levels)
        self._pages: list[Page] = []
        self._paged = dict.fromkeys(layout.split_at, 0)

    def take(self) -> list[Page]:
        """Return the pages that are full since it was last called."""
        taken, self._pages = self._pages, []
        return taken

    def nodes(self, power: int, count: int) -> Nodes:
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

    def _below(self, power: int, count: int) -> Nodes:
        """Return the next nodes of a level that are split, from those under them."""
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
