from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.platform import ids

_SEED = b"a seed for the tests of the bank"
_COMMAND = UUID("6f9619ff-8b86-4011-b42d-00cf4fc964ff")
_SEEDS = st.binary(min_size=1, max_size=64)
_COMMANDS = st.uuids()


@given(_SEEDS, _COMMANDS, st.integers(1, 50))
def test_replanning_a_command_yields_the_same_ids(seed, command, count):
    first = ids.IdSource(seed, command)
    again = ids.IdSource(seed, command)

    drawn = [first.next() for _ in range(count)]

    assert drawn == [again.next() for _ in range(count)]
    assert drawn == [ids.derive(seed, command, ordinal) for ordinal in range(count)]
    assert len(set(drawn)) == count
    assert first.ordinal == count


@given(_SEEDS, _COMMANDS, st.integers(0, 2**64 - 1))
def test_derived_ids_are_valid_version_8_uuids(seed, command, ordinal):
    made = ids.derive(seed, command, ordinal)

    assert made == UUID(str(made))
    assert hash(made) == hash(UUID(str(made)))
    assert made.version == 8
    assert made.variant == RFC_4122


def test_derived_ids_are_stable_between_releases():
    assert str(ids.derive(_SEED, _COMMAND, 0)) == "6d4c9531-d70c-8821-89c3-78677c15a231"
    assert str(ids.command_id("partner:1", _COMMAND)) == "b3767074-c226-8751-8242-5f017fe55a37"
    assert str(ids.at_place(ids.derive(_SEED, _COMMAND, 0), 7, 2)) == "6d4c9531-d70c-8821-9b20-bb416e8626b7"
    assert ids.digits(_SEED, _COMMAND, 0, count=12) == "947270574206"


@given(_SEEDS, _COMMANDS, st.integers(0, 65_535))
def test_the_group_id_is_recoverable_from_a_member_id(seed, command, n):
    group = ids.IdSource(seed, command).next_group()

    member = ids.member_of(group, n)

    assert group.bytes[-2:] == b"\0\0"
    assert group.version == 8
    assert int.from_bytes(member.bytes[-2:]) == n
    assert ids.group_of(member) == group
    assert ids.member_of(member, 0) == group


@given(_SEEDS, _COMMANDS, st.integers(0, 2**46 - 1), st.integers(0, 65_535))
def test_an_id_with_an_encoded_place_remains_a_valid_uuid(seed, command, entry_no, nth):
    derived = ids.derive(seed, command, 0)
    placed = ids.at_place(derived, entry_no, nth)
    assert ids.place_of(placed) == (entry_no, nth)
    assert (placed.version, placed.variant, placed.bytes[:8]) == (8, RFC_4122, derived.bytes[:8])
    assert ids.at_place(derived, entry_no ^ 1, nth) != placed


def test_command_ids_are_unique_per_caller_and_key():
    as_text = ids.command_id("partner:1", str(_COMMAND))

    assert as_text == ids.command_id("partner:1", _COMMAND)
    assert as_text != ids.command_id("partner:2", _COMMAND)
    assert ids.command_id("ab", "c") != ids.command_id("a", "bc")
    assert as_text.version == 8


@given(_SEEDS, _COMMANDS, st.integers(0, 1000), st.integers(1, 64))
def test_derived_digits_are_deterministic_decimal_text(seed, command, ordinal, count):
    text = ids.digits(seed, command, ordinal, count=count)

    assert text == ids.digits(seed, command, ordinal, count=count)
    assert len(text) == count
    assert text.isascii()
    assert text.isdigit()


OUT_OF_RANGE = {
    "a seed of 0 bytes": ("1 to 64 bytes", lambda: ids.IdSource(b"", _COMMAND)),
    "a seed of 65 bytes": ("1 to 64 bytes", lambda: ids.IdSource(bytes(65), _COMMAND)),
    "member -1": ("0 to 65535", lambda: ids.member_of(_COMMAND, -1)),
    "member 65,536": ("0 to 65535", lambda: ids.member_of(_COMMAND, 65_536)),
    "entry 2^46": ("entry 70368744177664", lambda: ids.at_place(_COMMAND, 2**46, 1)),
    "row 65,536": ("place 65536", lambda: ids.at_place(_COMMAND, 1, 65_536)),
    "0 digits": ("1 to 64", lambda: ids.digits(_SEED, _COMMAND, 0, count=0)),
    "65 digits": ("1 to 64", lambda: ids.digits(_SEED, _COMMAND, 0, count=65)),
}


@pytest.mark.parametrize(("limits", "call"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_an_id_part_out_of_range_is_refused(limits, call):
    with pytest.raises(ValueError, match=limits):
        call()


@given(_SEEDS, _COMMANDS, st.integers(0, 2**64 - 1))
def test_an_id_is_converted_to_a_version_4_uuid_like_the_standard_library(seed, command, ordinal):
    made = ids.derive(seed, command, ordinal)
    like = ids.as_version_4(made)
    assert like == UUID(bytes=made.bytes, version=4)
    assert (like.version, like.variant) == (4, RFC_4122)
