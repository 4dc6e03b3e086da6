"""Keccak-256 as Ethereum uses it, for the capitals of addresses. SHA-3 pads otherwise.

Written after FIPS 202. It checks typing mistakes and guards nothing.
"""

from collections.abc import Iterator

_LANE = 2**64 - 1
_RATE_BYTES = 136
_SIDE = 5


def _round_constants() -> Iterator[int]:
    """Yield the constant of each of the 24 rounds: bits of a shift register (algorithm 5 of FIPS 202)."""
    register = 1
    for _ in range(24):
        constant = 0
        for place in range(7):
            constant |= (register & 1) << (2**place - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        yield constant


_ROUNDS = tuple(_round_constants())


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
