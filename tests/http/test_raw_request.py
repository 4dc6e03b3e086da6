"""JSON bodies: what is refused before the operation runs, and how each mistake is reported."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest

from billfold.http.raw_request import convert, decode, instant_in_body
from billfold.http.schemas import NOT_BLANK
from billfold.platform.errors import BillfoldError, InvalidInput


class Anything(msgspec.Struct, forbid_unknown_fields=True):
    text: str | None = None
    inside: dict[str, object] | None = None
    many: list[str] | None = None


def refusal(body, declared=Anything):
    with pytest.raises(BillfoldError) as refused:
        decode(body, declared)
    return refused.value


def error_details(body, declared):
    error = refusal(body, declared)
    assert isinstance(error, InvalidInput)
    return [(".".join(map(str, each.loc)), each.msg, each.type) for each in error.errors]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (rb'{"text":"a\u0000b"}', "body.text"),
        (rb'{"text":"\u001b[31m"}', "body.text"),
        (rb'{"text":"\b"}', "body.text"),
        (rb'{"text":"\u0085"}', "body.text"),
        (b'{"text":"\x7f"}', "body.text"),
        ('{"text":"\u0085"}'.encode(), "body.text"),
        (rb'{"text":"\uFFFE"}', "body.text"),
        ('{"text":"\u202egnp.x"}'.encode(), "body.text"),
        (rb'{"text":"\u2067x\u2069"}', "body.text"),
        (rb'{"inside":{"deep":["a","\u0000"]}}', "body.inside.deep.1"),
        (rb'{"inside":{"\u0000":1}}', "body.inside"),
        (rb'{"many":["a","\f"]}', "body.many.1"),
    ],
)
def test_a_control_character_anywhere_in_a_body_is_refused(body, place):
    assert error_details(body, Anything) == [(place, "may not hold control characters", "value_error")]


@pytest.mark.parametrize("bad", [r"\n", r"\r", r"\t", "\u2028", r"\u2029", "\u200e", r"\u200F", "\u061c", r"\u061c"])
@pytest.mark.parametrize("field", ["name", "pocket_name"])
def test_a_name_with_line_breaks_or_bidi_marks_is_refused(bad, field):
    body = f'{{"inside":{{"{field}":"A{bad}B"}}}}'.encode()
    assert error_details(body, Anything) == [(f"body.inside.{field}", "may not hold control characters", "value_error")]


SEALED = b"sealed:" + b"A" * 28


@pytest.mark.parametrize("text", [SEALED, rb"\u0073ealed:" + b"A" * 28, rb"sealed\u003a" + b"-" * 99])
def test_text_that_looks_encrypted_is_refused_in_any_spelling(text):
    wrong = [("body.text", "may not look like an encrypted value", "value_error")]
    assert error_details(b'{"text":"' + text + b'"}', Anything) == wrong


@pytest.mark.parametrize(
    "text",
    ["sealed: bids of Monday", "two\nlines\r\n", "a\ttab", r"C:\u0000", "Zoë 💰", "\u200fright to left", "\u00a0"],
)
def test_ordinary_text_is_accepted_unchanged(text):
    assert decode(msgspec.json.encode({"text": text}), Anything).text == text


def test_an_oversized_number_is_refused_without_a_python_error_text():
    error = refusal(b'{"text":' + b"9" * 5000 + b"}")
    assert error.code == "malformed-json"
    assert error.detail.endswith("A number in it has thousands of digits.")


@pytest.mark.parametrize("body", [rb'{"text":"\ud800"}', rb'{"text":1,"\ud800":1}', rb'{"inside":{"\uDE00":"\u0000"}}'])
def test_a_lone_surrogate_anywhere_in_a_body_is_malformed_json(body):
    error = refusal(body)
    assert error.code == "malformed-json"
    assert error.detail.endswith("A text in it has half of a surrogate pair.")


def test_a_complete_surrogate_pair_is_accepted():
    assert decode(rb'{"text":"\ud83d\udcb0"}', Anything).text == "💰"


@pytest.mark.parametrize("body", [b'{"text":NaN}', b'{"text":"a","text":"b"}', b'{"text":"a"', b""])
def test_near_json_is_malformed_json(body):
    assert refusal(body).code == "malformed-json"


MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    "body",
    [
        begin + pump * ((MEBIBYTE - len(begin)) // len(pump))
        for begin in (b"", b"[" * 40, b'{"text":"')
        for pump in (
            b"[",
            b'\\"',
            b'"',
            b'[\\"',
            b'{"":',
            b"[],",
            b'"a",',
            b"\\u00",
            b"\\",
            b"9",
            b"0.",
            b" ",
            b"\xc2\x7f",
        )
    ],
)
def test_hostile_bodies_are_parsed_in_one_pass(body):
    """Parsing again for each character would take hours."""
    assert refusal(body).code in {"malformed-json", "invalid-input"}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"many": ["a"] * 1001}, "body.many"),
        ({"inside": {str(n): n for n in range(1001)}}, "body.inside"),
        ({str(n): n for n in range(1001)}, "body"),
    ],
)
def test_a_list_or_object_with_over_a_thousand_members_is_refused(body, place):
    assert error_details(msgspec.json.encode(body), Anything) == [(place, "may have at most 1000 items", "too_long")]


class Wood(msgspec.Struct, tag_field="kind", tag="WOOD", forbid_unknown_fields=True):
    rings: Annotated[int, msgspec.Meta(ge=1, le=900)]


class Stone(msgspec.Struct, tag_field="kind", tag="STONE", forbid_unknown_fields=True):
    weight: int


class Order(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    color: Literal["RED", "BLUE"] | None = None
    colors: list[Literal["RED", "BLUE"]] | None = None
    material: Wood | Stone | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=5, pattern=NOT_BLANK)] | None = None
    code: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}\Z", description="two letters")] | None = None
    bare: Annotated[str, msgspec.Meta(pattern=r"^x\Z")] | None = None
    number: int | None = None
    ready: bool = False
    lines: Annotated[list[int], msgspec.Meta(min_length=1)] | None = None
    id: UUID | None = None
    due: date | None = None
    at: datetime | None = None


@pytest.mark.parametrize(
    ("body", "place", "words"),
    [
        ({"color": "GREEN"}, "color", "must be one of BLUE, RED"),
        ({"colors": ["RED", "GREEN"]}, "colors.1", "must be one of BLUE, RED"),
        ({"material": {"kind": "AIR"}}, "material.kind", "must be one of WOOD, STONE"),
        ({"material": {"kind": "WOOD"}}, "material.rings", "is required"),
        ({"material": {"kind": "WOOD", "rings": 0}}, "material.rings", "must be at least 1"),
        ({"material": {"kind": "WOOD", "rings": 901}}, "material.rings", "must be at most 900"),
        ({"material": {"kind": "STONE", "weight": 1, "x": 1}}, "material.x", "is not a field of this object"),
        ({"name": ""}, "name", "must have at least 1 character"),
        ({"name": "longer"}, "name", "must have at most 5 characters"),
        ({"name": "  "}, "name", "may not be blank"),
        ({"code": "usa"}, "code", "must be two letters"),
        ({"code": "US\n"}, "code", "must be two letters"),
        ({"bare": "y"}, "bare", "must match ^x$"),
        ({"number": 1.5}, "number", "must be a whole number or null, not a number with a point or an exponent"),
        ({"number": "1"}, "number", "must be a whole number or null, not a text"),
        ({"ready": "yes"}, "ready", "must be true or false, not a text"),
        ({"lines": []}, "lines", "must have at least 1 item"),
        ({"id": "1"}, "id", "must be a UUID of 36 characters"),
        ({"due": "soon"}, "due", "must be a date, like 2025-06-02"),
        ({"at": "soon"}, "at", "must be a date-time with its offset, like 2025-06-02T09:00:00-04:00"),
        ({"colour": "RED"}, "colour", "is not a field of this body"),
    ],
)
def test_a_body_error_reports_its_location_and_the_expected_value(body, place, words):
    ((where, what, _),) = error_details(msgspec.json.encode(body), Order)
    assert (where, what) == (f"body.{place}", words)


def test_all_wrong_fields_of_a_body_are_reported_together():
    body = msgspec.json.encode({"color": 1, "number": "x", "colour": 2})
    assert [where for where, _, _ in error_details(body, Order)] == ["body.color", "body.number", "body.colour"]


def test_a_time_without_an_offset_is_reported_at_its_field():
    with pytest.raises(InvalidInput) as refused:
        instant_in_body("since", datetime.fromisoformat("2026-01-01T00:00:00"))
    assert [(each.loc, each.msg) for each in refused.value.errors] == [
        (("body", "since"), "needs an offset, such as Z or -04:00")
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("due", "0001-01-01"),
        ("due", "1599-12-31"),
        ("due", "2200-01-01"),
        ("due", "9999-12-31"),
        ("at", "0001-01-01T00:00:00+14:00"),
        ("at", "9999-12-31T23:59:59-14:00"),
        ("at", "2200-01-01T00:00:00Z"),
    ],
)
def test_an_out_of_range_date_is_refused_at_its_field(field, value):
    assert (f"body.{field}", "must be a day from 1600-01-01 to 2199-12-31", "out_of_range") in error_details(
        msgspec.json.encode({field: value}), Order
    )


@pytest.mark.parametrize("value", [1748822400, 1748822400.5, "1748822401", "2025-06-02T23:59:60Z", "2025-02-30"])
@pytest.mark.parametrize("field", ["due", "at"])
def test_a_number_or_a_leap_second_is_not_a_date(field, value):
    ((where, _, _),) = error_details(msgspec.json.encode({field: value}), Order)
    assert where == f"body.{field}"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (SEALED.decode(), "may not look like an encrypted value"),
        ("a\u0000b", "may not hold control characters"),
        ("\u202eevil", "may not hold control characters"),
    ],
)
def test_the_values_of_a_form_are_checked_like_the_texts_of_a_json_body(text, refused):
    with pytest.raises(InvalidInput) as wrong:
        convert({"account_name": text}, dict[str, str])
    assert [(each.loc, each.msg) for each in wrong.value.errors] == [(("body", "account_name"), refused)]
