"""Parameters by their types: how they are read, refused and documented."""

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest
from tests.reference.documents import DOCUMENTS, operations_of

from billfold.http.parameters import (
    Limit,
    Query,
    QueryParams,
    Since,
    Until,
    check_ranges,
    parameter_of,
    range_pairs,
    texts_among,
)
from billfold.platform.errors import InvalidInput

OWN_ID = "0f6f5c3a-9a43-4c83-8a2f-0d9a3a1c5b77"
UUID_SCHEMA = {"type": "string", "format": "uuid"}


class Filters(msgspec.Struct, frozen=True):
    """Query parameters as a struct; fields without `Query` are not parameters."""

    pocket_id: Annotated[UUID | None, Query()] = None
    kinds: Annotated[list[str] | None, Query(name="kind[]")] = None
    day: Annotated[date | None, Query()] = None
    hidden: int = 0


@pytest.mark.parametrize(
    ("kind", "default", "schema"),
    [
        (UUID | None, None, UUID_SCHEMA),
        (Annotated[list[UUID] | None, Query(name="pocket[]")], None, {"type": "array", "items": UUID_SCHEMA}),
        (Limit, 30, {"type": "integer", "minimum": 1, "maximum": 100, "default": 30}),
        (Literal["wtd", "range"], "wtd", {"type": "string", "enum": ["wtd", "range"], "default": "wtd"}),
        (date | None, None, {"type": "string", "format": "date"}),
        (bool, False, {"type": "boolean", "default": False}),
        (Since, None, {"type": "string"}),
        (Annotated[str | None, texts_among("x", frozenset("ba"))], None, {"type": "string", "enum": ["a", "b"]}),
    ],
)
def test_a_query_parameter_schema_matches_its_type(kind, default, schema):
    assert parameter_of("x", kind, default).schema == schema


def test_query_values_are_converted_and_missing_ones_get_defaults():
    sent = {"pocket_id": [OWN_ID], "kind[]": ["a", "b"], "day": ["2025-06-02"]}
    read = QueryParams(Filters).read(sent)
    assert read == Filters(pocket_id=UUID(OWN_ID), kinds=["a", "b"], day=date(2025, 6, 2))
    assert QueryParams(Filters).read({}) == Filters()


def test_every_invalid_query_parameter_is_reported_at_its_location():
    with pytest.raises(InvalidInput) as refused:
        QueryParams(Filters).read({"pocket_id": ["x"], "day": ["today"]})
    assert [each.loc for each in refused.value.errors] == [("query", "pocket_id"), ("query", "day")]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Limit, text) for text in ("0", "101", "1.5", "-1", "", "ten", " 5", "٣", "1000")),
        (bool, "yes"),
        (Literal["a", "b"], "c"),
        (UUID, OWN_ID.replace("-", "")),
        (Since, "2025-06-02T09:00"),
    ],
)
def test_a_query_value_of_the_wrong_type_is_refused(kind, text):
    with pytest.raises(InvalidInput) as refused:
        parameter_of("x", kind, None).read({"x": [text]})
    assert refused.value.errors[0].loc == ("query", "x")


def test_invalid_items_of_a_query_list_are_reported_individually():
    parameter = parameter_of("ids", Annotated[list[UUID] | None, Query(name="id[]")], None)
    with pytest.raises(InvalidInput) as refused:
        parameter.read({"id[]": [OWN_ID, "x"]})
    assert refused.value.errors[0].loc == ("query", "id[]", 1)


@pytest.mark.parametrize(
    ("begin", "end", "is_taken"),
    [
        ("2025-06-03", "2025-06-03", True),
        ("2025-06-03", "2025-06-02", False),
        ("2025-06-03T00:00:00Z", "2025-06-02T23:59:59Z", False),
        ("2025-06-03", "2025-06-03T03:00:00Z", False),
        ("2025-06-03T12:00:00-04:00", "2025-06-03", True),
        ("2025-06-03", None, True),
        (None, "0001-01-01", True),
    ],
)
def test_a_query_range_that_ends_before_it_begins_is_refused(begin, end, is_taken):
    pairs = range_pairs([parameter_of("x_from", Since, None), parameter_of("x_to", Until, None)])
    sent = {name: [text] for name, text in (("x_from", begin), ("x_to", end)) if text is not None}
    if is_taken:
        check_ranges(pairs, sent)
        return
    with pytest.raises(InvalidInput) as wrong:
        check_ranges(pairs, sent)
    assert wrong.value.errors[0].loc == ("query", "x_to")


def test_every_range_filter_of_every_list_is_validated():
    """Parameters of ranges are called `_from` and `_to` everywhere."""
    for document in DOCUMENTS.values():
        for _, _, _, operation in operations_of(document):
            names = {each["name"] for each in operation.get("parameters", ()) if each.get("in") == "query"}
            begins, ends = ({name.removesuffix(s) for name in names if name.endswith(s)} for s in ("_from", "_to"))
            assert begins == ends


@pytest.mark.parametrize("name", ["omit", "omit[]"])
def test_a_list_parameter_is_accepted_with_and_without_brackets(name):
    declared = parameter_of("omit", Annotated[list[str] | None, Query(name=name)], None)
    sent = {"omit": ["A"], "omit[]": ["B"]}
    assert sorted(declared.read(sent)) == ["A", "B"]
    assert (declared.name, declared.read({}), declared.read({"omit[]": ["C"]})) == (name, None, ["C"])
