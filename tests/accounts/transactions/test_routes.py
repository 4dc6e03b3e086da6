"""Transactions over HTTP: every level, every filter, sweeps, and the older reads of v1."""

from uuid import UUID

import pytest
from tests.support.databases import as_owner
from tests.support.world import UNKNOWN

PARTNERS = "/api/v2/transactions/"
CARD = "00000000-0000-4000-8000-0000000000ca"


def ids_of(items):
    return [item["id"] for item in items]


def lists_of(pocket):
    """Return the paths of the lists that contain a Pocket's transactions."""
    return [PARTNERS, f"/api/v2/customers/{pocket.customer}/transactions/", f"{pocket.path}transactions/"]


async def test_an_incoming_wire_transaction_shows_the_sender_details(world):
    pocket = await world.funded(100_000_00)
    (shown,) = (await world.get(f"{pocket.path}transactions/"))["items"]
    assert (shown["type"], shown["wire_type"]) == ("WIRE", "PAYMENT")
    assert shown["counterparty_name"] == "Contoso"
    assert (shown["direction"], shown["status"]) == ("CREDIT", "SETTLED")
    assert shown["amount"] == {"value": 100_000_00, "currency": "USD", "formatted": "$100,000.00"}
    assert (shown["customer_id"], shown["pocket_id"]) == (pocket.customer, pocket.id)
    assert shown["portal_id"] == pocket.portal
    assert shown["time_settled"] == shown["time_booked"]


async def test_an_ach_credit_settles_at_its_settlement_time(world):
    pocket = await world.pocket()
    await world.ach(pocket, 500_00)
    path, settled = f"{pocket.path}transactions/", {"time_settled_from": "2025-06-01"}
    (shown,) = (await world.get(path))["items"]
    assert (shown["status"], shown["time_settled"]) == ("BOOKED", None)
    assert (await world.get(path, settled))["items"] == []
    await world.until("2025-06-04T08:30:00-04:00")
    (shown,) = (await world.get(path))["items"]
    assert (shown["status"], shown["time_settled"]) == ("SETTLED", "2025-06-04T12:30:00Z")
    assert ids_of((await world.get(path, settled))["items"]) == [shown["id"]]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sweeps", ["true", "false"])
async def test_transaction_pages_at_every_level_add_up_to_the_ordered_list(world, order, sweeps):
    first = await world.funded(50_000_00)
    second = await world.pocket(first.customer)
    for cents in (100_00, 200_00):
        await world.ach(first, cents)
        await world.later(seconds=1)
        await world.transfer(first, second, 1_000_00 + cents)
    filters = {"order": order, "include_sweeps": sweeps}
    for path in lists_of(first):
        whole = (await world.get(path, {**filters, "limit": 100}))["items"]
        booked = [item["time_booked"] for item in whole]
        assert booked == sorted(booked, reverse=order == "desc")
        assert len(whole) == len(set(ids_of(whole)))
        for limit in (1, 2, 3):
            assert await world.pages(path, filters, limit=limit) == whole


async def test_a_sweep_is_listed_with_its_activity_in_the_opposite_direction(world):
    pocket = await world.funded(50_000_00)
    other = await world.pocket(pocket.customer)
    await world.transfer(pocket, other, 1_000_00)
    path = f"{pocket.path}transactions/"
    items = (await world.get(path, {"include_sweeps": "true", "order": "asc"}))["items"]
    assert [(i["type"], i["direction"]) for i in items] == [
        ("WIRE", "CREDIT"),
        ("SWEEP", "DEBIT"),
        ("ON_US", "DEBIT"),
        ("SWEEP", "CREDIT"),
    ]
    assert [i.get("sweep_direction") for i in items] == [None, "TO_BROKERAGE", None, "TO_BANK"]
    for activity, sweep in (items[:2], items[2:]):
        assert sweep["transaction_id"] == activity["transaction_id"]
        assert (sweep["amount"], sweep["time_booked"]) == (activity["amount"], activity["time_booked"])
        assert await world.get(f"{path}{sweep['id']}/") == sweep
    assert len((await world.get(path))["items"]) == 2


async def test_transactions_with_sweeps_and_fees_sum_to_zero(world):
    pocket = await world.funded(900_000_00)
    await world.transfer(pocket, await world.pocket(pocket.customer), 100_000_00)
    await world.until("2025-07-03T10:00:00-04:00")
    path = f"{pocket.path}transactions/"
    everything = await world.pages(path, {"include_sweeps": "true"}, limit=100)
    signed = [each["amount"]["value"] * (1 if each["direction"] == "CREDIT" else -1) for each in everything]
    assert (sum(signed), len(signed)) == (0, 6)
    (fee,) = (await world.get(path, {"type[]": "FEE", "include_sweeps": "true"}))["items"]
    assert (fee["fee_type"], fee["direction"]) == ("AUM_FEE", "DEBIT")
    sweep = await world.get(f"{path}{UUID(int=UUID(fee['id']).int + 1000)}/")
    assert (sweep["type"], sweep["direction"], sweep["amount"]) == ("SWEEP", "CREDIT", fee["amount"])
    older = f"/api/v1/service-accounts/{pocket.id}/transactions/"
    (shown,) = (await world.get(older, {"filter[types]": "GENERIC"}))["items"]
    assert shown["id"] == fee["id"]
    assert (await world.get(older, {"filter[types]": "WIRE_FEE"}))["items"] == []


async def test_a_transaction_is_found_by_its_id_or_its_transaction_id_only(world):
    pocket = await world.funded(50_000_00)
    other = await world.pocket(pocket.customer)
    await world.transfer(pocket, other, 1_000_00)
    path = f"{pocket.path}transactions/"
    (out,) = (await world.get(path, {"type[]": "ON_US"}))["items"]
    (into,) = (await world.get(f"{other.path}transactions/"))["items"]
    assert into["transaction_id"] == out["transaction_id"]
    for name in ("id", "transaction_id"):
        assert await world.get(f"{path}{out[name]}/") == out
        assert await world.get(f"{other.path}transactions/{into[name]}/") == into
    absent = UUID(int=UUID(out["transaction_id"]).int + 9)
    for wrong in (into["id"], str(absent), UNKNOWN):
        await world.refused("GET", f"{path}{wrong}/", status=404, code="not-found")
    await world.invalid("GET", f"{path}x/", loc="path.transaction_id")


async def test_transaction_filters_apply_at_every_level(world):
    pocket = await world.funded(50_000_00)
    other = await world.pocket(pocket.customer)
    await world.later(hours=1)
    await world.ach(pocket, 300_00)
    await world.later(hours=1)
    made = await world.transfer(pocket, other, 1_000_00)
    (ach,) = (await world.get(f"{pocket.path}transactions/", {"type[]": "ACH"}))["items"]
    only = {"pocket[]": pocket.id}
    for path in lists_of(pocket):
        for filters, kinds in (
            ({"type[]": ["ACH", "WIRE"]}, ["ACH", "WIRE"]),
            ({"direction": "DEBIT"}, ["ON_US"]),
            ({"amount_from": 300_00, "amount_to": 1_000_00}, ["ON_US", "ACH"]),
            ({"time_booked_from": ach["time_booked"]}, ["ON_US", "ACH"]),
            ({"time_booked_to": ach["time_booked"]}, ["WIRE"]),
            ({"time_booked_from": "2025-06-03"}, []),
            ({"on_us_transfer[]": made["id"]}, ["ON_US"]),
            ({"portal[]": pocket.portal}, ["ACH", "WIRE"]),
            ({"portal[]": pocket.portal, "on_us_transfer[]": made["id"]}, []),
            ({"wire[]": UNKNOWN}, []),
            ({"card[]": UNKNOWN}, []),
            ({"card[]": pocket.portal}, []),
        ):
            items = (await world.get(path, {**only, **filters}))["items"]
            assert [item["type"] for item in items] == kinds, (path, filters)


async def test_a_transaction_date_filter_includes_the_whole_last_day(world):
    pocket = await world.funded(50_000_00)
    today, before = "2025-06-02", "2025-06-01"
    for path in lists_of(pocket):
        for name in ("time_booked", "time_settled"):
            for day, count in ((today, 1), (before, 0), ("2199-12-31", 1)):
                filters = {f"{name}_to": day}
                assert len((await world.get(path, filters))["items"]) == count, (path, filters)
        exact = {"time_booked_from": today, "time_booked_to": today}
        assert len((await world.get(path, exact))["items"]) == 1


async def test_a_transaction_date_range_that_ends_before_it_begins_is_refused(world):
    pocket = await world.pocket()
    for path in lists_of(pocket):
        for name, begin, end in (("time_booked", "2025-06-03", "2025-06-02"), ("amount", "2", "1")):
            reversed_range = {f"{name}_from": begin, f"{name}_to": end}
            await world.invalid("GET", path, filters=reversed_range, loc=f"query.{name}_to")


async def test_a_transaction_cursor_with_different_filters_is_refused(world):
    pocket = await world.funded(50_000_00)
    await world.ach(pocket, 300_00)
    paths = lists_of(pocket)
    for path in paths:
        cursor = (await world.get(path, {"limit": 1}))["next_page"]
        for where, filters in (
            *((other, {}) for other in paths if other != path),
            (path, {"order": "asc"}),
            (path, {"include_sweeps": "true"}),
            (path, {"pocket[]": pocket.id}),
        ):
            wrong = {**filters, "cursor": cursor}
            await world.invalid("GET", where, filters=wrong, loc="query.cursor")


async def test_v1_shows_the_same_transactions(world):
    pocket = await world.funded(50_000_00)
    await world.ach(pocket, 300_00)
    older = f"/api/v1/service-accounts/{pocket.id}/transactions/"
    answer = await world.ask("GET", older, status=200)
    assert answer.headers["deprecation"] == "@1736121600"
    assert answer.headers["sunset"] == "Wed, 06 Jan 2027 00:00:00 GMT"
    ach, wire = answer.json()["items"]
    assert (ach["status"], wire["status"]) == ("PENDING", "COMPLETED")
    assert ach["service_account_id"] == pocket.id
    assert ach["details"]["ach_transaction"]["portal_id"] == pocket.portal
    assert await world.get(f"{older}{ach['id']}/") == ach
    of_customer = f"/api/v1/customers/{pocket.customer}/transactions/"
    assert await world.pages(of_customer, limit=1) == [ach, wire]
    for filters, found in (
        ({"order": "asc"}, [wire, ach]),
        ({"account[]": pocket.id, "filter[types]": "WIRE"}, [wire]),
        ({"filter[portal]": UNKNOWN}, []),
        ({"filter[card]": UNKNOWN}, []),
        ({"timestamp_from": "2025-06-03"}, []),
        ({"timestamp_to": "2025-06-03"}, [ach, wire]),
    ):
        assert (await world.get(of_customer, filters))["items"] == found, filters
    await world.invalid("GET", older, filters={"filter[types]": "FEE"}, loc="query.filter[types]")
    assert (await world.get(older, {"filter[card]": UNKNOWN}))["items"] == []
    for path in (older, of_customer):
        await world.invalid("GET", path, filters={"filter[card]": "1"}, loc="query.filter[card].0")


@pytest.fixture
async def used_card(world):
    """A Pocket with a wire and an ACH credit, which is treated as a card transaction during the test."""
    pocket = await world.funded(50_000_00)
    await world.ach(pocket, 300_00)
    change = "UPDATE transaction SET type = $2, details = $3 WHERE type = $1"
    written = await world.bank.pool.fetchval("SELECT details FROM transaction WHERE type = 'ACH'")
    await as_owner(world.bank, change, "ACH", "CARD", f'{{"card_id":"{CARD}"}}')
    yield pocket
    await as_owner(world.bank, change, "CARD", "ACH", written)


async def test_a_card_filter_lists_the_card_transactions_at_every_level(world, used_card):
    pocket = used_card
    for path in lists_of(pocket):
        for filters, kinds in (
            ({"card[]": CARD}, ["CARD"]),
            ({"card[]": [UNKNOWN, CARD.upper()]}, ["CARD"]),
            ({"card[]": CARD, "type[]": "WIRE"}, []),
            ({"card[]": CARD, "include_sweeps": "true"}, ["CARD", "SWEEP"]),
        ):
            items = (await world.get(path, filters))["items"]
            assert [item["type"] for item in items] == kinds, (path, filters)
    older = f"/api/v1/service-accounts/{pocket.id}/transactions/"
    for path in (older, f"/api/v1/customers/{pocket.customer}/transactions/"):
        (shown,) = (await world.get(path, {"filter[card]": CARD}))["items"]
        assert shown["details"]["card_transaction"] == {"card_id": CARD}


async def test_transaction_filters_apply_to_sweeps(world):
    pocket = await world.funded(50_000_00)
    await world.transfer(pocket, await world.pocket(pocket.customer), 1_000_00)
    path = f"{pocket.path}transactions/"
    for filters, kinds in (
        ({"direction": "CREDIT"}, ["SWEEP", "WIRE"]),
        ({"direction": "DEBIT"}, ["ON_US", "SWEEP"]),
        ({"type[]": "SWEEP"}, ["SWEEP", "SWEEP"]),
        ({"type[]": "WIRE", "direction": "DEBIT"}, []),
        ({"type[]": ["SWEEP", "ON_US"], "direction": "DEBIT"}, ["ON_US", "SWEEP"]),
    ):
        found = await world.pages(path, {**filters, "include_sweeps": "true"}, limit=1)
        assert [item["type"] for item in found] == kinds, filters
    await world.invalid("GET", path, filters={"type[]": "SWEEP"}, loc="query.type[]")
