"""The ledger log: found by any id, and paged in both directions."""

import asyncio

from tests.support.browser import first_match


async def test_the_ledger_page_finds_the_commit_of_a_transaction_and_its_neighbors(
    bank, operators, customer_desk, customer_world
):
    viewer, own = await operators("VIEWER"), await customer_desk.pocket(name="Reserve")
    await customer_world.wire(own, 250_000_00)
    (transaction,) = [
        each for each in (await customer_desk.get("/api/v2/transactions/"))["items"] if each["type"] == "WIRE"
    ]
    customer = customer_desk.team.customer
    for text in (own.id, own.portal, customer):
        await viewer.go(f"/bank/ledger?id={text}")
        assert (await viewer.follow()).url.path == f"/bank/ledger/{customer}"
    for text in (transaction["id"], "entry+1"):
        await viewer.go(f"/bank/ledger?customer={customer}&id={text}")
        assert viewer.page.headers["location"].endswith("#entry-1")
        await viewer.follow()
    assert "rail:wire to bank" in viewer.text
    assert "Wire received" in viewer.text
    assert "Buy of " in viewer.text
    path, before = viewer.page.url.path, first_match(r"Hash before</strong>.*?<code>([0-9a-f]{64})", viewer.page.text)
    many = asyncio.gather(*(viewer.http.get(path) for _ in range(2 * bank.pool.get_max_size())))
    assert {each.status_code for each in await asyncio.wait_for(many, 20)} == {200}, "each holds one connection"
    await viewer.go(first_match(r'href="([^"]+)" rel="prev"', viewer.page.text))
    assert first_match(r"Hash</strong>.*?<code>([0-9a-f]{64})", viewer.page.text) == before
    await viewer.go(f"/bank/ledger?customer={customer}&id=event+3")
    assert (await viewer.follow()).url.path == path
    for nothing in (
        "id=nonsense",
        f"customer={customer}&id=entry+999",
        f"customer={customer}&id=entry+x",
        "customer=1",
    ):
        assert (await viewer.go(f"/bank/ledger?{nothing}")).status_code == 404, nothing
    for wrong in (f"{customer}/0", f"{customer}/999999999999999", f"{customer}/x", "x", f"{customer}/{'9' * 30}"):
        assert (await viewer.go(f"/bank/ledger/{wrong}")).status_code == 404, wrong
