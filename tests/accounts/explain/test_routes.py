"""Explanations over HTTP: each results in the amount shown, and its arithmetic can be repeated from its inputs."""

import re
from datetime import UTC, date, datetime
from fractions import Fraction
from math import isqrt

import pytest
from tests.accounts.pockets.test_earnings_routes import FIGURES

CENTS = ("total_value", "cash", "liquidation_value_t0", "liquidation_value_t1", "owed", "held")
OF_ONE_BILL = ("market_value", "mark_price", "yield_to_maturity")

# -- a reader with fractions, who knows nothing but the answer --------------------------------


def half_up(value, places=0):
    scale = 10 ** int(places)
    return Fraction((2 * value * scale + 1) // 2, scale)


def rounded_down(value, places=0):
    scale = 10 ** int(places)
    return Fraction(value * scale // 1, scale)


def square_root(value):
    scale = 10**40
    return Fraction(isqrt(value.numerator * scale**2 // value.denominator), scale)


def number(text, unit):
    if unit == "DATE":
        return Fraction((date.fromisoformat(text) - date(2000, 1, 1)).days)
    if unit == "INSTANT":
        since = datetime.fromisoformat(text) - datetime(2000, 1, 1, tzinfo=UTC)
        return Fraction(since.days * 86_400 + since.seconds) + Fraction(since.microseconds, 10**6)
    return Fraction(text)


def computed(formula, values):
    text = re.sub(r"sum\((\w+)\)", r"total('\1')", formula)
    text = re.sub(r"(?<![\w.'])\d+(\.\d+)?", lambda found: f"number_('{found[0]}')", text)
    names = {name: found[0] for name, found in values.items() if len(found) == 1}
    known = {"number_": Fraction, "total": lambda name: sum(values.get(name, []), Fraction()), "max": max, "min": min}
    functions = {"round": half_up, "floor": rounded_down, "sqrt": square_root}
    return eval(text, {"__builtins__": {}}, {**names, **known, **functions})


def recomputed(explained):
    """Return the value recomputed from the inputs and all parts of an explanation; of a text, those of its parts."""
    if explained["unit"] == "TEXT":
        return [recomputed(each) for each in explained["parts"]]
    values: dict[str, list[Fraction]] = {}
    for each in explained["inputs"]:
        values.setdefault(each["symbol"], []).append(number(each["value"], each["unit"]))
    for each in explained["parts"]:
        values.setdefault(each["symbol"], []).append(recomputed(each))
    value = Fraction()
    for step in explained["steps"]:
        value = computed(step["formula"], values)
        values[step["symbol"]] = [value]
        assert abs(value - number(step["value"], step["unit"])) <= (0 if step["exact"] else Fraction(1, 10**12))
    assert value == number(explained["value"], explained["unit"])
    if explained["unit"] == "CENTS":
        assert explained["amount"]["value"] == value
    return value


def all_parts(explained):
    """Yield an explanation and all its parts."""
    yield explained
    for each in explained["parts"]:
        yield from all_parts(each)


def rows_of(explained, kind):
    found = [row for each in all_parts(explained) for row in each["rows"]]
    found += [row for each in all_parts(explained) for given in each["inputs"] for row in given["rows"]]
    return [row for row in found if row["kind"] == kind]


async def explain(desk, path, **query):
    answer = await desk.get(f"{path}explain/", query)
    assert answer["object_type"] == "Explained"
    recomputed(answer["explanation"])
    return answer["explanation"]


# -- the story ------------------------------------------------------------------------------


async def check_pocket(desk, pocket):
    """Check every figure of a Pocket against its explanation."""
    shown = (await desk.get(pocket.path))["portfolio"]
    for field in CENTS:
        assert (await explain(desk, pocket.path, field=field))["amount"] == shown[field]
    slope = await explain(desk, pocket.path, field="appreciation_per_second")
    assert Fraction(slope["value"]) == Fraction(shown["appreciation_per_second"])
    fees = await explain(desk, f"{pocket.path}fees/")
    assert [fees["amount"]] == ([each["amount"] for each in shown["fees"]] or [fees["amount"]])
    assert await explain(desk, pocket.path, field="fees") == fees
    assert 0 <= int(fees["inputs"][0]["value"]) < 3_650_000
    bills = await explain(desk, pocket.path, field="bills_value")
    assert bills["amount"]["value"] == sum(each["market_value"]["value"] for each in shown["securities"])
    unrealised = await explain(desk, pocket.path, field="unrealised")
    basis = "SELECT coalesce(sum(earnings_basis), 0)::bigint FROM account WHERE customer_id = $1 AND pocket_id = $2"
    assert bills["amount"]["value"] - unrealised["amount"]["value"] == (
        await desk.bank.pool.fetchval(basis, *pocket.key)
    )
    for held in shown["securities"]:
        of = [await explain(desk, pocket.path, field=field, cusip=held["cusip"]) for field in OF_ONE_BILL]
        assert of[0]["amount"] == held["market_value"]
        assert [Fraction(each["value"]) for each in of[1:]] == [
            Fraction(held[field]) for field in ("mark_price", "yield_to_maturity")
        ]
        lots = rows_of(of[0], "LOT")
        assert sum(each["units"] for each in lots) == held["quantity"]
        assert {each["cusip"] for each in lots} == {held["cusip"]}
        assert all(each["source"] for each in rows_of(of[0], "RATE"))


async def check_earnings(desk, pocket, **query):
    """Check every figure of earnings against its explanation; return them."""
    path, found = f"{pocket.path}earnings/", {}
    shown = await desk.get(path, query)
    for field in FIGURES:
        found[field] = await explain(desk, path, field=field, **query)
        assert found[field]["amount"] == shown[field]
    return found


@pytest.fixture
async def pockets_of_seven_weeks(world):
    """Two Pockets after seven weeks with a sale, moved bills, fees and payments after hours."""
    pocket = await world.funded(700_000_00, weeks=52)
    other = await world.pocket(pocket.customer, weeks=13)
    for each in (pocket, other):
        await world.post(f"/api/v1/sandbox/pockets/{each.id}/", {"real_time_yield": True}, 200)
    await world.days(2)
    await world.later(hours=3, seconds=17)
    await world.transfer(pocket, other, 120_000_01)
    pockets = f"/api/v2/customers/{pocket.customer}/pockets/"
    await world.patch(f"{pockets}{pocket.id}/", {"deposit_strategy_id": "UST-4W"})
    await world.ach(pocket, 7_777_77)
    await check_pocket(world, pocket)
    await world.days(25)
    await world.transfer(other, pocket, 50_000_00, transfer_type="SECURITY_TRANSFER")
    await world.until("2025-07-18T19:30:00-04:00")
    await world.wire(pocket, 33_333_33)
    return pocket, other


async def test_every_amount_of_an_active_pocket_equals_its_explanation(world, pockets_of_seven_weeks):
    for each in pockets_of_seven_weeks:
        await check_pocket(world, each)
    pockets = f"/api/v2/customers/{pockets_of_seven_weeks[0].customer}/pockets/"
    total = await explain(world, pockets, field="liquidation_value_t1")
    assert {each["rows"][0]["id"] for each in total["inputs"]} == {each.id for each in pockets_of_seven_weeks}
    shown = [each["portfolio"]["liquidation_value_t1"]["value"] for each in (await world.get(pockets))["items"]]
    assert total["amount"]["value"] == sum(shown)
    portfolio = await world.get(f"/api/v2/customers/{pockets_of_seven_weeks[0].customer}/portfolio/")
    for field in CENTS:
        assert portfolio[field] == (await explain(world, pockets, field=field))["amount"], field
    held = [
        security
        for each in pockets_of_seven_weeks
        for security in (await world.get(each.path))["portfolio"]["securities"]
    ]
    face = {
        day: sum(100_00 * each["quantity"] for each in held if each["maturity_date"] == day)
        for day in sorted({each["maturity_date"] for each in held})
    }
    assert {each["maturity_date"]: each["face_value"]["value"] for each in portfolio["maturities"]} == face
    for trade in (await world.get(f"{pockets_of_seven_weeks[0].path}trades/"))["items"]:
        # The fee of a month is sold for settlement on the same day, by another bid.
        if trade["activity"] in {"BUY", "SELL"} and trade["settled_date"] != trade["book_date"]:
            field = "ask" if trade["activity"] == "BUY" else "bid_t1"
            path = f"/api/v2/securities/{trade['cusip']}/"
            price = await explain(world, path, field=field, at=trade["trade_datetime"])
            assert Fraction(price["value"]) == Fraction(trade["price"])


async def test_earnings_explanations_list_the_transactions_and_trades(world, pockets_of_seven_weeks):
    pocket, _ = pockets_of_seven_weeks
    moved = await check_earnings(world, pocket, period="all-time")
    for field, sign in (("contributions", 1), ("withdrawals", -1), ("fees", -1)):
        rows = rows_of(moved[field], "TRANSACTION")
        paid = sign * sum(each["amount"]["value"] for each in rows)
        bills = sum(each["amount"]["value"] for each in rows_of(moved[field], "TRADE"))
        assert paid + bills == moved[field]["amount"]["value"] > 0
    await check_earnings(world, pocket, period="range", date_from="2025-06-10", date_to="2025-07-01")


async def test_an_explanation_of_an_unknown_field_or_cusip_is_refused(world):
    pocket = await world.funded(1_000_00)
    for path in (pocket.path, f"{pocket.path}earnings/", f"{pocket.path}fees/"):
        await world.get(f"{path}explain/")
    for wrong, loc in (
        ({"field": "appreciation_per_second"}, "query.field"),
        ({"field": "mark_price"}, "query.cusip"),
        ({"field": "cash", "cusip": "912797PT8"}, "query.cusip"),
    ):
        await world.invalid("GET", f"{pocket.path}explain/", filters=wrong, loc=loc)
    await world.refused(
        "GET",
        f"{pocket.path}explain/",
        filters={"field": "mark_price", "cusip": "912797AA1"},
        status=404,
        code="not-found",
    )
    path = "/api/v2/securities/912797PT8/explain/"
    await world.invalid("GET", path, filters={"at": "2030-01-01T00:00:00Z"}, loc="query.at")
    await world.invalid("GET", path, filters={"at": "1999-01-01T00:00:00Z"}, loc="query.at")
