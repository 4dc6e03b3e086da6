"""What the documents say of parameters."""

import pytest

from billfold.interfaces.http.parameters import shaped

MAYBE = {"oneOf": [{"type": "string"}, {"type": "null"}]}
MANY = {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
UUID = {"type": "string", "format": "uuid"}


@pytest.mark.parametrize(
    ("name", "text", "declared", "told"),
    [
        ("pocket_id", None, MAYBE, UUID),
        ("key_id", None, {"type": "string"}, {"type": "string"}),
        ("pocket[]", None, MANY, {"type": "array", "items": UUID}),
        ("type[]", None, MANY, {"type": "array", "items": {"type": "string"}}),
        (
            "limit",
            "Default 30, at most 100.",
            MAYBE,
            {"type": "integer", "minimum": 1, "maximum": 100, "default": 30},
        ),
        (
            "period",
            "wtd, all-time or range.",
            {"type": "string", "default": "all-time"},
            {"type": "string", "default": "all-time", "enum": ["wtd", "all-time", "range"]},
        ),
        ("book_date_to", "A date; included.", MAYBE, {"type": "string", "format": "date"}),
        ("time_booked_to", "A date, or a date-time.", MAYBE, {"type": "string"}),
    ],
)
def test_a_parameter_says_what_may_be_sent(name, text, declared, told):
    parameter = {"name": name, "in": "query", "description": text, "schema": declared}
    assert shaped(parameter) == {**parameter, "schema": told}


def test_headers_and_references_stay_as_they_are():
    for parameter in ({"$ref": "#/x"}, {"name": "x-id", "in": "header", "schema": MAYBE}):
        assert shaped(parameter) == parameter
