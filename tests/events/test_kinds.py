"""Kinds of events: their readers, and the fields of each."""

import re

import msgspec
import pytest

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import example_payload, payload_schema


def test_both_apis_have_the_same_event_kinds_but_for_those_of_one_side():
    assert set(PARTNER_KINDS) - set(CUSTOMER_KINDS) == {"proofs.daily-root.published"}
    own = {each for each in set(CUSTOMER_KINDS) - set(PARTNER_KINDS) if not each.startswith("transfers.series.")}
    assert own == {"policy.proposed", "policy.updated", "team.member.updated", "transfers.request.updated"}
    assert (len(PARTNER_KINDS), len(CUSTOMER_KINDS)) == (54, 61)


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
