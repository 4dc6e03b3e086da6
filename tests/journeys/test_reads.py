"""Lists, older reads, strategies, and what a wrong or foreign name is answered with."""

from tests.journeys.two_partners import FOREIGN


async def test_pages_walk_to_the_end_and_back(town):
    customer = await town.customer()
    pocket = await town.pocket(customer)
    await town.fund(pocket, 100_000, count=7)
    path = f"/api/v2/pockets/{pocket}/transactions/"
    whole = (await town.get(path, query="include_sweeps=true&limit=100"))["items"]
    assert len(whole) == 14
    for query in ("limit=3", "limit=3&order=asc", "limit=3&include_sweeps=true"):
        seen, cursor, pages = [], "", []
        while True:
            page = await town.get(path, query=f"{query}&cursor={cursor}" if cursor else query)
            seen += [item["id"] for item in page["items"]]
            pages.append(page)
            if not page["next_page"]:
                break
            cursor = page["next_page"]
        assert len(seen) == len(set(seen)) == (14 if "sweeps" in query else 7)
        back = await town.get(path, query=f"{query}&cursor={pages[-1]['prev_page']}")
        assert [i["id"] for i in back["items"]] == [i["id"] for i in pages[-2]["items"]]


async def test_cursors_are_the_callers_lists_own(town):
    customer = await town.customer()
    pocket, other = await town.pocket(customer), await town.pocket(customer)
    await town.fund(pocket, 100_000, count=3)
    path = f"/api/v2/pockets/{pocket}/transactions/"
    cursor = (await town.get(path, query="limit=1"))["next_page"]
    for query, where in (
        (f"limit=1&cursor={cursor[:-2]}xx", path),
        (f"limit=1&type[]=ACH&cursor={cursor}", path),
        (f"limit=1&cursor={cursor}", f"/api/v2/pockets/{other}/transactions/"),
        ("limit=1&cursor=nonsense", path),
    ):
        refused = await town.get(where, query=query, status=422)
        assert refused["detail"][0]["loc"] == ["query", "cursor"]


async def test_wrong_queries_are_422_and_name_the_place(town):
    customer = await town.customer()
    pocket = await town.pocket(customer)
    path = f"/api/v2/pockets/{pocket}/transactions/"
    for query, place in (
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("direction=UP", "direction"),
        ("type[]=GOLD", "type[]"),
        ("amount_from=1.5", "amount_from"),
        ("time_booked_from=yesterday", "time_booked_from"),
        ("wire[]=1", "wire[]"),
        ("colour=red", "colour"),
    ):
        refused = await town.get(path, query=query, status=422)
        assert refused["detail"][0]["loc"][:2] == ["query", place]
    for query in ("period=never", "period=range", "period=range&date_from=2025-06-01"):
        await town.get(f"/api/v2/pockets/{pocket}/earnings/", query=query, status=422)
    await town.get("/api/v2/pockets/", query="omit[]=NAME", status=422)


async def test_foreign_and_unknown_ids_are_the_same_404(town):
    customer = await town.customer()
    pocket = await town.pocket(customer)
    await town.fund(pocket, 100_000)
    portal = (await town.get(f"/api/v2/pockets/{pocket}/portals/"))["items"][0]["id"]
    done = (await town.get(f"/api/v2/pockets/{pocket}/transactions/"))["items"][0]["id"]
    paths = [
        "/api/v1/customers/{c}/",
        "/api/v1/customers/{c}/portals/",
        "/api/v1/customers/{c}/service-accounts/",
        "/api/v1/customers/{c}/trades/",
        "/api/v1/customers/{c}/transactions/",
        "/api/v1/service-accounts/{p}/",
        "/api/v1/service-accounts/{p}/portals/",
        "/api/v1/service-accounts/{p}/portals/{q}/",
        "/api/v1/service-accounts/{p}/trades/",
        "/api/v1/service-accounts/{p}/transactions/",
        "/api/v1/service-accounts/{p}/transactions/{t}/",
        "/api/v2/customers/{c}/counterparties/",
        "/api/v2/customers/{c}/pockets/",
        "/api/v2/customers/{c}/pockets/{p}/",
        "/api/v2/customers/{c}/portals/",
        "/api/v2/customers/{c}/trades/",
        "/api/v2/customers/{c}/transactions/",
        "/api/v2/pockets/{p}/",
        "/api/v2/pockets/{p}/earnings/",
        "/api/v2/pockets/{p}/portals/",
        "/api/v2/pockets/{p}/portals/{q}/",
        "/api/v2/pockets/{p}/portals/{q}/funding-instructions/",
        "/api/v2/pockets/{p}/trades/",
        "/api/v2/pockets/{p}/transactions/",
        "/api/v2/pockets/{p}/transactions/{t}/",
    ]
    for path in paths:
        real = path.format(c=customer, p=pocket, q=portal, t=done)
        await town.get(real)
        await town.get(real, by=town.foreigner, status=404)
        unknown = path.format(c=FOREIGN, p=FOREIGN, q=FOREIGN, t=FOREIGN)
        assert (await town.get(unknown, status=404))["code"] == "not-found"
        broken = path.format(c="x", p="y", q="z", t="t")
        await town.get(broken, status=422)
        await town.get(real[:-1])
    mine = f"pocket_id[]={pocket}"
    await town.get("/api/v2/earnings/", query=mine, by=town.foreigner, status=404)
    await town.get("/api/v2/pockets/", query=f"customer_id[]={customer}", by=town.foreigner, status=404)
    assert (await town.get("/api/v2/pockets/", by=town.foreigner))["items"] == []
    assert (await town.get("/api/v2/transactions/", by=town.foreigner))["items"] == []


async def test_older_reads_show_the_same_money_and_announce_their_end(town):
    customer = await town.customer()
    pocket = await town.pocket(customer)
    await town.fund(pocket, 100_000)
    answer = await town.client.get(f"/api/v1/service-accounts/{pocket}/")
    assert "deprecation" in answer.headers
    assert "sunset" in answer.headers
    account = answer.json()
    new = await town.get(f"/api/v2/pockets/{pocket}/")
    assert account["total_value"] == new["portfolio"]["total_value"]
    listed = await town.get(f"/api/v1/customers/{customer}/service-accounts/")
    assert listed["count"] == 1
    old = (await town.get(f"/api/v1/service-accounts/{pocket}/transactions/"))["items"][0]
    assert (old["status"], old["details"]["transaction_type"]) == ("PENDING", "ACH")
    one = await town.get(f"/api/v1/service-accounts/{pocket}/transactions/{old['id']}/")
    assert one == old
    of_customer = await town.get(f"/api/v1/customers/{customer}/transactions/")
    assert of_customer["items"] == [old]


async def test_strategies_are_the_four_terms(town):
    listed = await town.get("/api/v2/trading-strategies/", query="enabled_for=DEPOSIT")
    assert [s["id"] for s in listed["items"]] == ["UST-4W", "UST-13W", "UST-26W", "UST-52W"]
    assert (await town.get("/api/v2/pocket-configurations/"))["count"] == 4
    await town.get("/api/v2/trading-strategies/", query="enabled_for=GOLD", status=422)


async def test_a_pocket_is_opened_by_any_name_of_its_strategy(town):
    customer = await town.customer()
    path = f"/api/v2/customers/{customer}/pockets/"
    for body, deposit, again in (
        ({"pocket_configuration_id": "UST-13W"}, "UST-13W", "UST-13W"),
        ({"trading_strategy_id": "UST-52W"}, "UST-52W", "UST-52W"),
        ({"deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": None}, "UST-4W", None),
        ({"deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": "UST-26W"}, "UST-4W", "UST-26W"),
    ):
        made = await town.post(path, {"pocket_name": "p", **body})
        assert (made["deposit_strategy_id"], made["reinvestment_strategy_id"]) == (deposit, again)
        assert made["status"] == "OPEN"
    for body in (
        {},
        {"deposit_strategy_id": "UST-1W"},
        {"deposit_strategy_id": "UST-4W", "trading_strategy_id": "UST-13W"},
        {"deposit_strategy_id": "UST-4W", "status": "OPEN"},
    ):
        await town.post(path, {"pocket_name": "p", **body}, status=422)
    listed = await town.get(path, query="omit[]=PORTFOLIO")
    assert len(listed["items"]) == 4
    assert all(p["portfolio"] is None for p in listed["items"])
    bare = await town.get(path, query="omit=ALL_TIME_EARNINGS&limit=1")
    assert "all_time_earnings" not in bare["items"][0]["portfolio"]


async def test_real_time_yield_shows_a_slope_that_can_be_added(town):
    customer = await town.customer()
    plain, live = await town.pocket(customer), await town.pocket(customer)
    await town.post(f"/api/v1/sandbox/pockets/{live}/", {"real_time_yield": True}, status=200)
    for pocket in (plain, live):
        await town.wire(pocket, 10_000_000)
    shown = (await town.get(f"/api/v2/pockets/{live}/"))["portfolio"]
    assert float(shown["appreciation_per_second"]) > 0
    assert shown["pricing_timestamp"] == "2025-06-02T13:00:00Z"
    hidden = (await town.get(f"/api/v2/pockets/{plain}/"))["portfolio"]
    assert hidden["appreciation_per_second"] is None
    await town.advance(seconds=3600)
    later = await town.value(live)
    expected = shown["total_value"]["value"] + float(shown["appreciation_per_second"]) * 3600
    assert abs(later - expected) <= 1
