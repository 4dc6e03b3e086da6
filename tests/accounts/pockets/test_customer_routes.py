"""Pockets through the Customer API."""

from uuid import UUID

import pytest
from tests.support.partner_desk import UNKNOWN

from billfold.accounts.commands import CloseCustomer
from billfold.platform import ids

POCKETS = "/api/v2/pockets/"


async def test_a_pocket_is_opened_listed_and_read_as_partners_read_it(customer_desk, customer_world):
    opened = await customer_desk.pocket(weeks=13)
    await customer_world.wire(opened, 250_000_00)
    shown = await customer_desk.get(opened.path)
    assert shown == await customer_world.get(opened.path)
    assert shown["portfolio"]["total_value"]["value"] > 249_000_00
    assert (shown["status"], shown["customer_id"]) == ("OPEN", customer_desk.team.customer)
    assert shown["deposit_strategy_id"] == shown["reinvestment_strategy_id"] == "UST-13W"
    listed = await customer_desk.get(POCKETS)
    assert listed == {"offset": 0, "count": 1, "items": [shown], "object_type": "List"}


async def test_strategies_are_set_by_either_spelling(customer_desk):
    both = await customer_desk.post(POCKETS, {"pocket_name": "a", "trading_strategy_id": "UST-26W"})
    assert both["deposit_strategy_id"] == both["reinvestment_strategy_id"] == "UST-26W"
    none = {"pocket_name": "b", "deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": None}
    assert (await customer_desk.post(POCKETS, none))["reinvestment_strategy_id"] is None
    apart = {**none, "reinvestment_strategy_id": "UST-52W"}
    assert (await customer_desk.post(POCKETS, apart))["reinvestment_strategy_id"] == "UST-52W"


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"pocket_name": "x"}, "body.deposit_strategy_id"),
        ({"deposit_strategy_id": "UST-4W"}, "body.pocket_name"),
        ({"pocket_name": "", "deposit_strategy_id": "UST-4W"}, "body.pocket_name"),
        ({"pocket_name": "x" * 129, "deposit_strategy_id": "UST-4W"}, "body.pocket_name"),
        ({"pocket_name": "x", "deposit_strategy_id": "UST-5W"}, "body.deposit_strategy_id"),
        ({"pocket_name": "x", "deposit_strategy_id": 4}, "body.deposit_strategy_id"),
        (
            {"pocket_name": "x", "trading_strategy_id": "UST-4W", "deposit_strategy_id": "UST-13W"},
            "body.trading_strategy_id",
        ),
        ({"pocket_name": "x", "pocket_configuration_id": "UST-4W"}, "body.pocket_configuration_id"),
    ],
)
async def test_a_new_pocket_of_another_shape_is_refused(customer_desk, body, loc):
    await customer_desk.invalid("POST", POCKETS, body, loc=loc)
    assert (await customer_desk.get(POCKETS))["count"] == 0


async def test_the_list_is_cut_by_offset_newest_first(customer_desk):
    opened = []
    for n in range(4):
        opened.append((await customer_desk.pocket(name=f"p{n}")).id)
        await customer_desk.later(seconds=1)
    page = await customer_desk.get(POCKETS, {"offset": 1, "limit": 2})
    assert (page["offset"], page["count"]) == (1, 4)
    assert [each["id"] for each in page["items"]] == [opened[2], opened[1]]
    assert (await customer_desk.get(POCKETS, {"offset": 9}))["items"] == []
    lean = await customer_desk.get(POCKETS, {"omit[]": "PORTFOLIO"})
    assert [each["portfolio"] for each in lean["items"]] == [None] * 4
    assert (await customer_desk.get(POCKETS, {"filter[status]": "CLOSED"}))["count"] == 0
    for filters in (
        {"offset": -1},
        {"offset": "x"},
        {"offset": 10**30},
        {"limit": 0},
        {"limit": 101},
        {"omit": "X"},
        {"filter[status]": "X"},
        {"cursor": "x"},
    ):
        await customer_desk.ask("GET", POCKETS, status=422, filters=filters)


async def test_a_pocket_is_renamed_and_gets_other_strategies(customer_desk):
    opened = await customer_desk.pocket()
    assert (await customer_desk.patch(opened.path, {"name": "Taxes"}))["pocket_name"] == "Taxes"
    changed = await customer_desk.patch(opened.path, {"pocket_name": "Rent", "reinvestment_strategy_id": None})
    assert (changed["pocket_name"], changed["reinvestment_strategy_id"]) == ("Rent", None)
    await customer_desk.invalid("PATCH", opened.path, {"name": "a", "pocket_name": "b"}, loc="body.name")
    await customer_desk.invalid("PATCH", opened.path, {"status": "OPEN"}, loc="body.status")


async def test_a_pocket_closes_under_its_three_conditions(customer_desk, customer_world):
    kept, emptied = await customer_desk.pocket(), await customer_desk.pocket()
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    await customer_desk.invalid("PATCH", kept.path, {"status": "CLOSED"}, loc="body.closure_reason")
    await customer_world.wire(kept, 1_000_00)
    await customer_desk.refused("PATCH", kept.path, closing, status=422, code="pocket-not-empty")
    assert (await customer_desk.patch(emptied.path, closing))["status"] == "CLOSED"
    await customer_desk.refused("PATCH", emptied.path, closing, status=409, code="pocket-not-open")
    await customer_desk.refused("PATCH", emptied.path, {"name": "x"}, status=409, code="pocket-not-open")
    portals = await customer_desk.get(f"{emptied.path}portals/")
    assert {each["status"] for each in portals["items"]} == {"CLOSED"}


async def test_the_last_open_pocket_stays(customer_desk):
    only = await customer_desk.pocket()
    closing = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    await customer_desk.refused("PATCH", only.path, closing, status=422, code="last-open-pocket")
    assert (await customer_desk.get(only.path))["status"] == "OPEN"


async def test_pockets_of_another_customer_are_not_there(customer_desk, other_customer):
    theirs = await other_customer.pocket()
    for method, path, body in (
        ("GET", theirs.path, b""),
        ("PATCH", theirs.path, {"name": "mine"}),
        ("GET", f"{POCKETS}{UNKNOWN}/", b""),
    ):
        await customer_desk.refused(method, path, body, status=404, code="not-found")
    assert (await customer_desk.get(POCKETS))["count"] == 0
    assert (await other_customer.get(theirs.path))["pocket_name"] == "Reserve"


async def test_nothing_opens_for_a_customer_who_has_left(customer_desk):
    customer = UUID(customer_desk.team.customer)
    leaves = CloseCustomer(caller="test", key=ids.new(), customers=(customer,), reason="moved")
    await customer_desk.bank.engine.submit(leaves)
    body = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}
    await customer_desk.refused("POST", POCKETS, body, status=409, code="customer-not-open")
