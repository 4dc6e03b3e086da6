"""Ids as a function of (bank seed, command, ordinal).

A command that is planned again keeps its ids and a seeded run repeats byte for byte.
Ids are RFC 9562 version 8. They are made, written and compared by the thousand when money is booked,
where the UUID of the standard library takes most of the time: `platform/database/pool.py` replaces it with the driver's
own type, which is equal and compatible.
"""

import hashlib
from collections.abc import Callable
from uuid import UUID, uuid4

_ID_BYTES = 16
_ORDINAL_BYTES = 8
_MEMBER_BYTES = 2
_MEMBERS_MAX = 2 ** (8 * _MEMBER_BYTES) - 1
_SEED_BYTES_MAX = 64
_DIGITS_MAX = 64
_GROUP_MASK = ~_MEMBERS_MAX
_HALF_BITS = 64
_ENTRY_BITS = 46
_PLACE_MASK = (1 << 62) - 1
_SPREAD = 0x9E3779B97F4A7C15
"""An odd number (2^64 divided by the golden ratio) whose multiples look unlike their factors."""
_VARIANT = 0x2 << 62
_CLEAR_VERSION_BITS = ~((0xF << 76) | (0x3 << 62))
_VERSION_4 = (0x4 << 76) | (0x2 << 62)
_VERSION_8 = (0x8 << 76) | (0x2 << 62)


def _plain_uuid(raw: bytes) -> UUID:
    return UUID(bytes=raw)


_uuid_factory: Callable[[bytes], UUID] = _plain_uuid


def set_uuid_factory(factory: Callable[[bytes], UUID]) -> None:
    """Set the constructor of ids: `mould` returns the UUID of sixteen bytes."""
    global _uuid_factory  # noqa: PLW0603 - one per process, set when the driver is loaded
    _uuid_factory = factory


class IdSource:
    """The ids of one command, in order. Two sources of one command yield the same ids.

    The seed is a secret key of 1 to 64 bytes: without it nobody can tell an id in advance.
    """

    __slots__ = ("_keyed_hash", "ordinal")

    def __init__(self, seed: bytes, command_id: UUID) -> None:
        self._keyed_hash = _keyed_hash(seed, command_id)
        self.ordinal = 0

    def next(self) -> UUID:
        """Return the next id."""
        hasher = self._keyed_hash.copy()
        hasher.update(self.ordinal.to_bytes(_ORDINAL_BYTES))
        self.ordinal += 1
        return _to_uuid(int.from_bytes(hasher.digest()) & _CLEAR_VERSION_BITS | _VERSION_8)

    def next_group(self) -> UUID:
        """Return the next id with its last two bytes zero, leaving room for its members."""
        hasher = self._keyed_hash.copy()
        hasher.update(self.ordinal.to_bytes(_ORDINAL_BYTES))
        self.ordinal += 1
        return _to_uuid(int.from_bytes(hasher.digest()) & _CLEAR_VERSION_BITS & _GROUP_MASK | _VERSION_8)


def derive(seed: bytes, command_id: UUID, ordinal: int) -> UUID:
    """Return id number `ordinal` (from 0) of a command, the same that `IdSource` yields in that position."""
    hasher = _keyed_hash(seed, command_id)
    hasher.update(ordinal.to_bytes(_ORDINAL_BYTES))
    return _to_uuid(int.from_bytes(hasher.digest()) & _CLEAR_VERSION_BITS | _VERSION_8)


def command_id(caller: str, key: UUID | str) -> UUID:
    """Return the id of the command a caller sent under an idempotency key.

    The same key from two callers is two commands. A UUID and its canonical text are one key.
    """
    hasher = hashlib.blake2b(digest_size=_ID_BYTES, person=b"billfold.command")
    for part in (caller.encode(), str(key).encode()):
        hasher.update(len(part).to_bytes(_ORDINAL_BYTES))
        hasher.update(part)
    return _to_uuid(int.from_bytes(hasher.digest()) & _CLEAR_VERSION_BITS | _VERSION_8)


def member_of(group: UUID, n: int) -> UUID:
    """Return member `n` of a group, 0 being the group itself. Raises ValueError beyond 65535."""
    if not 0 <= n <= _MEMBERS_MAX:
        raise ValueError(f"a group has members 0 to {_MEMBERS_MAX}, not {n}")
    return _to_uuid(group.int & _GROUP_MASK | n)


def group_of(member: UUID) -> UUID:
    """Return the group a member belongs to."""
    return _to_uuid(member.int & _GROUP_MASK)


def at_place(derived: UUID, entry_no: int, nth: int) -> UUID:
    """Return an id of ours that encodes the place of its row: `nth` of an entry. Raises ValueError beyond 46, 16 bits.

    The second half is the place, mixed with the first, which comes from the command and is unique.
    """
    if not (0 <= entry_no < 1 << _ENTRY_BITS and 0 <= nth <= _MEMBERS_MAX):
        raise ValueError(f"no id says place {nth} of entry {entry_no}")
    first = derived.int >> _HALF_BITS
    mixed = (entry_no << 8 * _MEMBER_BYTES | nth) ^ first * _SPREAD & _PLACE_MASK
    return _to_uuid(first << _HALF_BITS | _VARIANT | mixed)


def place_of(placed: UUID) -> tuple[int, int]:
    """Return the place encoded in an id, (entry number, nth); for any other id it is arbitrary."""
    place = (placed.int ^ (placed.int >> _HALF_BITS) * _SPREAD) & _PLACE_MASK
    return place >> 8 * _MEMBER_BYTES, place & _MEMBERS_MAX


def as_version_4(derived: UUID) -> UUID:
    """Return an id of ours as one of version 4, for standards that accept no other version."""
    return _to_uuid(derived.int & _CLEAR_VERSION_BITS | _VERSION_4)


def digits(seed: bytes, command_id: UUID, ordinal: int, count: int) -> str:
    """Return `count` decimal digits (1 to 64) as text, evenly spread and repeatable.

    Drawn separately from the ids: an account number reveals nothing about the id of the same ordinal.
    """
    if not 1 <= count <= _DIGITS_MAX:
        raise ValueError(f"digits come in lots of 1 to {_DIGITS_MAX}, not {count}")
    hasher = hashlib.blake2b(
        command_id.bytes + ordinal.to_bytes(_ORDINAL_BYTES), key=_checked_seed(seed), person=b"billfold.digits"
    )
    return str(int.from_bytes(hasher.digest()) % 10**count).zfill(count)


def new() -> UUID:
    """Return a random version 4 id, for what belongs to the wall clock (traces, sessions)."""
    return uuid4()


def _keyed_hash(seed: bytes, command: UUID) -> hashlib.blake2b:
    return hashlib.blake2b(command.bytes, key=_checked_seed(seed), digest_size=_ID_BYTES)


def _checked_seed(seed: bytes) -> bytes:
    if not 1 <= len(seed) <= _SEED_BYTES_MAX:
        raise ValueError(f"a seed has 1 to {_SEED_BYTES_MAX} bytes, this one has {len(seed)}")
    return seed


def _to_uuid(number: int) -> UUID:
    """Return the UUID of a number that is known to have 128 bits."""
    return _uuid_factory(number.to_bytes(_ID_BYTES))
