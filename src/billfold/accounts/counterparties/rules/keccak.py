"""Keccak-256 as Ethereum uses it, for the capitals of addresses. SHA-3 pads otherwise.

Written after FIPS 202. It checks typing mistakes and guards nothing.
"""

from __future__ import annotations

_LANE = 2**64 - 1
_RATE_BYTES = 136
_SIDE = 5
_ROUNDS = (
    0x0000000000000001,
    0x0000000000008082,
    0x800000000000808A,
    0x8000000080008000,
    0x000000000000808B,
    0x0000000080000001,
    0x8000000080008081,
    0x8000000000008009,
    0x000000000000008A,
    0x0000000000000088,
    0x0000000080008009,
    0x000000008000000A,
    0x000000008000808B,
    0x800000000000008B,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800A,
    0x800000008000000A,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
)


def keccak_256(message: bytes) -> bytes:
    """Return the 32 bytes of the hash."""
    padded = bytearray(message) + b"\x01"
    padded += bytes(-len(padded) % _RATE_BYTES)
    padded[-1] |= 0x80
    lanes = [[0] * _SIDE for _ in range(_SIDE)]
    for start in range(0, len(padded), _RATE_BYTES):
        for n in range(_RATE_BYTES // 8):
            at = start + 8 * n
            lanes[n % _SIDE][n // _SIDE] ^= int.from_bytes(padded[at : at + 8], "little")
        _permute(lanes)
    return b"".join(lanes[n][0].to_bytes(8, "little") for n in range(4))


def _permute(a: list[list[int]]) -> None:
    for constant in _ROUNDS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(_SIDE)]
        for x in range(_SIDE):
            mixed = c[x - 1] ^ _turned(c[(x + 1) % _SIDE], 1)
            for y in range(_SIDE):
                a[x][y] ^= mixed
        x, y, lane = 1, 0, a[1][0]
        for n in range(24):
            x, y = y, (2 * x + 3 * y) % _SIDE
            lane, a[x][y] = a[x][y], _turned(lane, (n + 1) * (n + 2) // 2 % 64)
        for y in range(_SIDE):
            row = [a[x][y] for x in range(_SIDE)]
            for x in range(_SIDE):
                a[x][y] = row[x] ^ (~row[(x + 1) % _SIDE] & row[(x + 2) % _SIDE] & _LANE)
        a[0][0] ^= constant


def _turned(lane: int, by: int) -> int:
    return (lane << by | lane >> (64 - by)) & _LANE
