from datetime import UTC, datetime

import msgspec
import pytest

from billfold.audit.rules import CHAIN_START, REDACTED, NewEntry, build_entry, is_chained_to, open_details, redact
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.errors import InvariantError

VAULT = Vault(bytes(range(32)))
NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)


def row_of(*, vault=VAULT, previous=CHAIN_START, **fields):
    given = {"origin": Origin.operator(), "action": "pocket.created", "resource_type": "pocket", **fields}
    entry = NewEntry(customer_id=ids.new(), **given)
    return build_entry(entry, 1, previous, at=NOW, name="operator", vault=vault)


def test_an_unmodified_row_matches_its_chain_hash():
    row = row_of()
    assert is_chained_to(CHAIN_START, row, VAULT)
    assert not is_chained_to(b"another", row, VAULT)


CHANGES = (
    {"outcome": "FAILURE", "entry_no": 2, "details": '{"a":1}', "actor": "SYSTEM", "action": "pocket.closed"}
    | {"recorded_at": NOW.replace(microsecond=1), "ip_address": "", "resource_type": "portal", "hash": bytes(36)}
    | dict.fromkeys(("resource_id", "client_id", "actor_name", "user_agent"), "x")
    | dict.fromkeys(("member_id", "customer_id", "entry_id"), ids.new())
)


@pytest.mark.parametrize("column", CHANGES)
def test_a_row_with_any_changed_column_fails_its_chain_hash(column):
    assert not is_chained_to(CHAIN_START, msgspec.structs.replace(row_of(), **{column: CHANGES[column]}), VAULT)


def test_a_row_verifies_under_a_retired_key_but_not_under_an_unknown_key():
    row, new_key = row_of(), bytes(reversed(range(32)))
    assert is_chained_to(CHAIN_START, row, Vault(new_key, retired=[bytes(range(32))]))
    assert not is_chained_to(CHAIN_START, row, Vault(new_key))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"shared_secret": "whsec_x", "url": "https://a"}, {"shared_secret": REDACTED, "url": "https://a"}),
        ({"Access-Token": "x"}, {"Access-Token": REDACTED}),
        ({"set_pin": "1234", "pan": "4111", "span": "wide"}, {"set_pin": REDACTED, "pan": REDACTED, "span": "wide"}),
        ({"note": "his number is 123-45-6789."}, {"note": f"his number is {REDACTED}."}),
        ({"note": "card 4111 1111 1111 1111"}, {"note": f"card {REDACTED}"}),
        ({"list": [{"cvv": "123"}, "4111111111111111"]}, {"list": [{"cvv": REDACTED}, REDACTED]}),
        ({"account_number": "4111111111111112"}, {"account_number": "4111111111111112"}),
        ({"amount": 4111111111111111, "none": None}, {"amount": 4111111111111111, "none": None}),
        ({"id": "5d0c2a4e-8f00-4000-8000-0000000000e1"}, {"id": "5d0c2a4e-8f00-4000-8000-0000000000e1"}),
    ],
)
def test_secrets_card_numbers_and_tax_ids_are_redacted_from_audit_details(given, kept):
    assert redact(given) == kept


def test_contact_details_are_encrypted_and_decrypt_only_in_their_own_entry():
    given = {
        "email": "anna@b.example",
        "invited": [{"phone_number": "+12025550123", "role": "VIEWER"}],
        "refused": "There is no user 'anna@b.example'.",
        "name": "sealed:" + "A" * 28,
    }
    row, other = row_of(details=given), row_of(details=given)
    assert not [each for each in ("anna", "555", 'AAAA"') if each in row.details]
    assert '"role":"VIEWER"' in row.details
    assert open_details(row, VAULT) == given
    moved = msgspec.structs.replace(row, details=other.details)
    assert open_details(moved, VAULT) == msgspec.json.decode(other.details)


def test_oversized_audit_details_are_left_out():
    row = row_of(details={str(n): "x" * 500 for n in range(100)})
    assert "left_out" in row.details
    assert len(row.details) < 100


def test_an_audit_action_without_a_verb_raises_an_error():
    with pytest.raises(InvariantError):
        row_of(action="created")


def test_a_nul_character_in_an_audited_user_agent_is_removed():
    row = row_of(origin=Origin(kind="CLIENT", user_agent="a\0b" + "x" * 900))
    assert row.user_agent is not None
    assert row.user_agent.startswith("ab")
    assert len(row.user_agent) == 400
