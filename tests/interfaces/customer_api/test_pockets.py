"""Pockets through the Customer API."""

from uuid import UUID

import pytest
from tests.interfaces.partner_api.desk import UNKNOWN

from billfold.flows.account_commands import CloseCustomer
from billfold.kit import ids

POCKETS = "/api/v2/pockets/"


async def test_a_pocket_is_opened_listed_and_read_as_partners_read_it(desk, world):
    opened = await desk.pocket(weeks=13)
    await world.wire(opened, 250_000_00)
    shown = await desk.get(opened.path)
    assert shown == await world.get(opened.path)
    assert shown["portfolio"]["total_value"]["value"] > 249_000_00
    assert (shown["status"], shown["customer_id"]) == ("OPEN", desk.team.customer)
    assert shown["deposit_strategy_id"] == shown["reinvestment_strategy_id"] == "UST-13W"
    listed = await desk.get(POCKETS)
    assert listed == {"offset": 0, "count": 1, "items": [shown], "object_type": "List"}


async def test_strategies_are_set_by_either_spelling(desk):
    both = await desk.post(POCKETS, {"pocket_name": "a", "trading_strategy_id": "UST-26W"})
    assert both["deposit_strategy_id"] == both["reinvestment_strategy_id"] == "UST-26W"
    none = {"pocket_name": "b", "deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": None}
    assert (await desk.post(POCKETS, none))["reinvestment_strategy_id"] is None
    apart = {**none, "reinvestment_strategy_id": "UST-52W"}
    assert (await desk.post(POCKETS, apart))["reinvestment_strategy_id"] == "UST-52W"


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
            {
                "pocket_name": "x",
                "trading_strategy_id": "UST-4W",
                "deposit_strategy_id": "UST-13W",
            },
            "body.trading_strategy_id",
        ),
        (
            {"pocket_name": "x", "pocket_configuration_id": "UST-4W"},
            "body.pocket_configuration_id",
        ),
    ],
)
async def test_a_new_pocket_of_another_shape_is_refused(desk, body, loc):
    await desk.invalid("POST", POCKETS, body, loc=loc)
    assert (await desk.get(POCKETS))["count"] == 0


async def test_the_list_is_cut_by_offset_newest_first(desk):
    opened = []
    for n in range(4):
        opened.append((await desk.pocket(name=f"p{n}")).id)
        await desk.later(seconds=1)
    page = await desk.get(POCKETS, {"offset": 1, "limit": 2})
    assert (page["offset"], page["count"]) == (1, 4)
    assert [each["id"] for each in page["items"]] == [opened[2], opened[1]]
    assert (await desk.get(POCKETS, {"offset": 9}))["items"] == []
    lean = await desk.get(POCKETS, {"omit[]": "PORTFOLIO"})
    assert [each["portfolio"] for each in lean["items"]] == [None] * 4
    assert (await desk.get(POCKETS, {"filter[status]": "CLOSED"}))["count"] == 0
    for filters in (
        {"offset": -1}, {"offset": "x"}, {"offset": 10**30}, {"limit": 0}, {"limit": 101},
        {"omit": "X"}, {"filter[status]": "X"}, {"cursor": "x"},
    ):  # fmt: skip
        await desk.ask("GET", POCKETS, status=422, filters=filters)


async def test_a_pocket_is_renamed_and_gets_other_strategies(desk):
    opened = await desk.pocket()
    assert (await desk.patch(opened.path, {"name": "Taxes"}))["pocket_name"] == "Taxes"
    changed = await desk.patch(
        opened.path, {"pocket_name": "Rent", "reinvestment_strategy_id": None}
    )
    assert (changed["pocket_name"], changed["reinvestment_strategy_id"]) == ("Rent", None)
    await desk.invalid("PATCH", opened.path, {"name": "a", "pocket_name": "b"}, loc="body.name")
    await desk.invalid("PATCH", opened.path, {"status": "OPEN"}, loc="body.status")


async def test_a_pocket_closes_under_its_three_conditions(desk, world):
    kept, emptied = await desk.pocket(), await desk.pocket()
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    await desk.invalid("PATCH", kept.path, {"status": "CLOSED"}, loc="body.closure_reason")
    await world.wire(kept, 1_000_00)
    await desk.refused("PATCH", kept.path, closing, status=422, code="pocket-not-empty")
    assert (await desk.patch(emptied.path, closing))["status"] == "CLOSED"
    await desk.refused("PATCH", emptied.path, closing, status=409, code="pocket-not-open")
    await desk.refused("PATCH", emptied.path, {"name": "x"}, status=409, code="pocket-not-open")
    portals = await desk.get(f"{emptied.path}portals/")
    assert {each["status"] for each in portals["items"]} == {"CLOSED"}


async def test_the_last_open_pocket_stays(desk):
    only = await desk.pocket()
    closing = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    await desk.refused("PATCH", only.path, closing, status=422, code="last-open-pocket")
    assert (await desk.get(only.path))["status"] == "OPEN"


async def test_pockets_of_another_customer_are_not_there(desk, stranger):
    theirs = await stranger.pocket()
    for method, path, body in (
        ("GET", theirs.path, b""),
        ("PATCH", theirs.path, {"name": "mine"}),
        ("GET", f"{POCKETS}{UNKNOWN}/", b""),
    ):
        await desk.refused(method, path, body, status=404, code="not-found")
    assert (await desk.get(POCKETS))["count"] == 0
    assert (await stranger.get(theirs.path))["pocket_name"] == "Reserve"


async def test_nothing_opens_for_a_customer_who_has_left(desk):
    customer = UUID(desk.team.customer)
    leaves = CloseCustomer(caller="test", key=ids.new(), customers=(customer,), reason="moved")
    await desk.bank.engine.submit(leaves)
    body = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}
    await desk.refused("POST", POCKETS, body, status=409, code="customer-not-open")
