"""Every date has a range: values outside it are refused at their field, and its ends work."""

import re

import msgspec
import pytest
from tests.reference.documents import DOCUMENTS, operations_of
from tests.support.world import UNKNOWN

from billfold.apis.customer_api import customer_operations
from billfold.apis.partner_api import partner_operations
from billfold.http.raw_request import decode
from billfold.platform.errors import InvalidInput
from billfold.sandbox.routes.operations import sandbox_operations

DAYS_OUT_OF_RANGE = ("0001-01-01", "1599-12-31", "9999-12-31", "2025-02-30")
INSTANTS_OUT_OF_RANGE = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2025-06-02T23:59:60Z", "1748822400")
ENDS = ("1600-01-01", "2199-12-31")
DATED = re.compile(r"\bdate(-time)?\b")


def dates_in_queries(api):
    """Return path and name of each date or date-time parameter, and whether it is a date only."""
    found = []
    for _, _, path, operation in operations_of(DOCUMENTS[api]):
        for each in operation.get("parameters", ()):
            is_date = each.get("schema", {}).get("format") == "date"
            if each.get("in") == "query" and (is_date or DATED.search(each.get("description", ""))):
                found.append((path, each["name"], is_date))
    return found


async def wrong_answers(api, desk, days=DAYS_OUT_OF_RANGE, instants=INSTANTS_OUT_OF_RANGE, **ids):
    """Send values out of range, and both ends, in every parameter; return the wrong responses."""
    wrong = []
    for path, name, is_date in dates_in_queries(api):
        filled = re.sub(r"\{(\w+)\}", lambda found: str(ids.get(found[1], UNKNOWN)), path)
        more = {"period": "range"} if "/earnings/" in path else {}
        for text in (*days, *(() if is_date else instants)):
            answer = await desk.send("GET", filled, filters={name: text, **more})
            places = [each["loc"] for each in answer.json().get("detail", ()) if answer.status_code == 422]
            if ["query", name] not in places:
                wrong.append((path, name, text, answer.text))
        for text in ENDS:
            answer = await desk.send("GET", filled, filters={name: text, **more})
            wrong += [(path, name, text, answer.text)] if answer.status_code >= 500 else []
    return wrong


async def test_an_out_of_range_date_parameter_of_the_partner_api_is_refused(world):
    pocket = await world.pocket(await world.customer())
    ids = {"customer_id": pocket.customer, "pocket_id": pocket.id, "account_id": pocket.id, "cusip": "912797PT8"}
    assert await wrong_answers("partner", world, **ids) == []


async def test_an_out_of_range_date_parameter_of_the_customer_api_is_refused(customer_desk):
    pocket = await customer_desk.pocket()
    few = {"days": DAYS_OUT_OF_RANGE[:1], "instants": INSTANTS_OUT_OF_RANGE[1:2]}  # a token has a limit a minute
    assert await wrong_answers("customer", customer_desk, **few, pocket_id=pocket.id, cusip="912797PT8") == []


def dates_in(schema, schemas, place=()):
    """Yield the place of each date and date-time of a body, without those in lists."""
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if schema.get("format") in {"date", "date-time"}:
        yield place
    for name, each in schema.get("properties", {}).items():
        yield from dates_in(each, schemas, (*place, name))
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from dates_in(each, schemas, place)


def dates_in_bodies():
    types = {each.name: each.body for each in (*partner_operations(sandbox_operations()), *customer_operations())}
    found = {}
    for document in DOCUMENTS.values():
        for name, _, _, operation in operations_of(document):
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None:
                for place in dates_in(body["schema"], document["components"]["schemas"]):
                    found[f"{name} {'.'.join(place)}"] = (types[name], place)
    return found


BODIES = dates_in_bodies()


def test_request_bodies_with_dates_are_discovered():
    assert len(BODIES) > 15


@pytest.mark.parametrize(("body", "place"), BODIES.values(), ids=BODIES)
def test_an_out_of_range_date_in_a_body_is_refused_at_its_field(body, place):
    for text in ("0001-01-01", "9999-12-31", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        sent: object = text
        for name in reversed(place):
            sent = {name: sent}
        with pytest.raises(InvalidInput) as refused:
            decode(msgspec.json.encode(sent), body)
        assert ("body", *place) in {each.loc for each in refused.value.errors}
