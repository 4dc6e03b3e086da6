"""Kinds of events: their readers, and the fields of each."""

import re

import msgspec
import pytest

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS, example_payload, payload_schema


def test_the_event_kinds_of_partners_match_the_contract():
    families = {"application", "batches", "card", "hold", "proofs", "reports", "settlements", "transfers"}
    assert {kind.split(".")[0] for kind in PARTNER_KINDS} == families
    assert len(PARTNER_KINDS) == 40
    assert not {"trades.maturity", "transfers.on-us.received"} & set(PARTNER_KINDS)


def test_the_event_kinds_of_customers_cover_wires_transfers_bills_and_reports():
    assert len(CUSTOMER_KINDS) == 24
    assert not [kind for kind in CUSTOMER_KINDS if ".ach." in kind or ".crypto." in kind]
    own = {each for each in CUSTOMER_KINDS if not each.startswith("transfers.series.")} - set(PARTNER_KINDS)
    assert own == {"trades.maturity", "transfers.on-us.received"}


def test_every_event_kind_is_visible_to_partners_or_customers():
    assert set(KINDS) == {*PARTNER_KINDS, *CUSTOMER_KINDS}
    assert list(KINDS) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_an_event_kind_has_a_name_a_sentence_and_an_example_payload(kind):
    assert re.fullmatch(r"[a-z]+(\.[a-z_-]+){1,3}", kind.name)
    assert re.fullmatch(r"[A-Z].+\.", kind.meaning)
    sent = msgspec.json.encode(kind.example)
    assert msgspec.json.decode(sent, type=kind.payload) == kind.example


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_an_event_example_matches_its_schema(kind):
    schema, example = payload_schema(kind), example_payload(kind)
    assert schema["type"] == "object"
    assert schema["description"]
    assert set(schema["required"]) <= set(example) <= set(schema["properties"])
    for name, value in example.items():
        assert isinstance(value, {"string": str, "integer": int}[schema["properties"][name]["type"]])


def test_fields_that_may_be_missing_are_not_required():
    schema = payload_schema(KINDS["transfers.ach.in.success"])
    assert schema["required"] == ["service_account_id"]
    assert schema["properties"]["ach_id"] == {"type": "string", "format": "uuid"}
