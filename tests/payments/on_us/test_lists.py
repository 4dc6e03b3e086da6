"""The list of on-us transfers, in both APIs."""

from uuid import uuid4

LIST = "/api/v1/transfers/on-us/"


async def test_on_us_transfers_are_listed_by_pocket_status_time_amount_payee_and_note(
    world, customer_desks, other_partner
):
    customer = await world.customer()
    pocket, other = await world.funded(1_000_00, customer), await world.pocket(customer)
    notes = [{"external_id": f"t-{n}", "metadata": {"n": str(n % 2)}} for n in range(5)]
    made = [await world.transfer(pocket, other, (n + 1) * 10_00, **note) for n, note in enumerate(notes)]
    await world.transfer(other, pocket, 9_000_00, status="REJECTED")
    ids = {each["id"] for each in made}
    of = {"customer_id": customer}
    listed = await world.pages(LIST, of)
    assert len(listed) == 6
    assert ids < {each["id"] for each in listed}
    assert all(each["time_created"] for each in listed)
    cases = [
        ({"pocket_id": pocket.id}, 6),
        ({"status[]": "COMPLETED"}, 5),
        ({"status[]": "REJECTED"}, 1),
        ({"type[]": "PEER_TO_PEER"}, 0),
        ({"amount_from": 20_00, "amount_to": 40_00}, 3),
        ({"counterparty_id": str(uuid4())}, 0),
        ({"metadata[n]": "1"}, 2),
        ({"time_created_to": "2020-01-01"}, 0),
        ({"external_id": "t-3"}, 1),
    ]
    member = await customer_desks(customer)
    for filters, found in cases:
        assert len((await world.get(LIST, of | filters))["items"]) == found, filters
        assert len((await member.get(LIST, filters))["items"]) == found, filters
    assert [each["id"] for each in (await world.get(LIST, {"pocket_id": other.id}))["items"]]
    await world.invalid("GET", LIST, loc="query.customer_id")
    await world.invalid(
        "GET", LIST, loc="query.external_id", filters=of | {"external_id": "t-3", "status[]": "PENDING"}
    )
    for filters in (of, {"pocket_id": pocket.id}):
        await other_partner.refused("GET", LIST, status=404, code="not-found", filters=filters)
    stranger = await customer_desks(await world.customer("Contoso"))
    for filters in (of, {"pocket_id": pocket.id}):
        await stranger.refused("GET", LIST, status=404, code="not-found", filters=filters)
    assert (await stranger.get(LIST))["items"] == []


async def test_a_search_among_many_transfers_ends_early_and_its_cursor_continues(world, monkeypatch):
    monkeypatch.setattr("billfold.platform.database.paging.SEARCHED_MAX", 2)
    pocket = await world.funded(1_000_00)
    other = await world.pocket(pocket.customer)
    for n in range(6):
        await world.later(minutes=1)
        await world.transfer(pocket, other, (n + 1) * 10_00)
    filters = {"customer_id": pocket.customer, "amount_to": 10_00}
    page, found, pages = await world.get(LIST, filters), [], 0
    while True:
        found += page["items"]
        pages += 1
        if page["next_page"] is None:
            break
        page = await world.get(LIST, filters | {"cursor": page["next_page"]})
    assert (len(found), pages) == (1, 3)
