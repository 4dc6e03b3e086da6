"""JSON Schemas of payloads say what is sent."""

import pytest

from billfold.events.kinds import KINDS
from billfold.events.payload_schemas import example_payload, payload_schema

FORMS = {"string": str, "integer": int}


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_fits_its_schema(kind):
    schema, example = payload_schema(kind), example_payload(kind)
    assert schema["type"] == "object"
    assert schema["description"]
    assert set(schema["required"]) <= set(example) <= set(schema["properties"])
    for name, value in example.items():
        assert isinstance(value, FORMS[schema["properties"][name]["type"]])


def test_fields_that_may_be_missing_are_not_required():
    schema = payload_schema("transfers.ach.in.success")
    assert schema["required"] == ["service_account_id"]
    assert schema["properties"]["ach_id"] == {"type": "string", "format": "uuid"}
