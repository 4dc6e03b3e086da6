from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billfold.data_keys.keys import DataKey, PartyField
from billfold.platform.crypto import associated_data, is_sealed_text
from billfold.platform.errors import InvariantError

ACME, OTHER = UUID(int=1), UUID(int=2)
KEY = DataKey(ACME, bytes(range(32)))
PLACE = associated_data("counterparty", "details", 7, tenant_id=ACME)


@given(st.binary(max_size=200), st.binary(max_size=40))
def test_a_sealed_value_opens_at_its_place_and_only_stable_sealing_is_deterministic(plain, aad):
    stable, random = KEY.seal_stable(plain, aad), KEY.seal(plain, aad)

    assert KEY.open(stable, aad) == KEY.open(random, aad) == plain
    assert KEY.seal_stable(plain, aad) == stable
    assert KEY.seal(plain, aad) != random


@given(st.text(max_size=60))
def test_a_text_round_trips_through_text_sealing(plain):
    sealed = KEY.seal_text(plain, PLACE)

    assert is_sealed_text(sealed)
    assert KEY.open_text(sealed, PLACE) == plain


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_sealed_value_with_a_changed_bit_is_refused(where, bit):
    for sealed in map(bytearray, (KEY.seal(b"021000021", PLACE), KEY.seal_stable(b"021000021", PLACE))):
        sealed[where % len(sealed)] ^= 1 << bit
        with pytest.raises(InvariantError):
            KEY.open(bytes(sealed), PLACE)


def test_a_sealed_value_at_a_wrong_place_or_subject_or_never_sealed_is_refused():
    elsewhere = associated_data("counterparty", "details", 8, tenant_id=ACME)
    same_key_of_another = DataKey(OTHER, bytes(range(32)))
    for sealed in (KEY.seal(b"021000021", PLACE), KEY.seal_stable(b"021000021", PLACE)):
        for key, aad in ((KEY, elsewhere), (same_key_of_another, PLACE), (DataKey(ACME, bytes(32)), PLACE)):
            with pytest.raises(InvariantError):
                key.open(sealed, aad)
    for text in ("", "sealed:", "sealed:!", "sealed:AAAA", "021000021"):
        with pytest.raises(InvariantError):
            KEY.open_text(text, PLACE)


def test_sealed_party_accounts_compare_within_a_customer_and_sealed_looking_text_is_sealed_again():
    sealed = PartyField.ACCOUNT.seal(KEY, "0044501")
    other = PartyField.ACCOUNT.seal(DataKey(OTHER, bytes(range(32))), "0044501")

    assert sealed == PartyField.ACCOUNT.seal(KEY, "0044501") != other
    assert PartyField.ACCOUNT.open(KEY, sealed) == PartyField.ACCOUNT.open(None, "0044501") == "0044501"
    assert PartyField.ACCOUNT.open(None, sealed) is None
    assert PartyField.TEXT.open(KEY, PartyField.TEXT.seal(KEY, sealed)) == sealed
    for field, text in ((PartyField.ADDRESS, sealed), (PartyField.ACCOUNT, other)):
        with pytest.raises(InvariantError):
            field.open(KEY, text)
