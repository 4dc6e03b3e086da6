"""Every bad day of the trading desk on a running sandbox: it ends with what operators see, or fails."""

from datetime import date, timedelta
from typing import Any

import asyncpg
import pytest
from tests.support.sandbox_process import BOX, Sandbox, perform
from tests.trading.oracle import Oracle

from billfold.cli.context import CliError
from billfold.sandbox.running_sandbox import partner_http
from billfold.sandbox.scenarios.player import SCENARIOS, Player
from billfold.sandbox.scenarios.story import RecordingClient
from billfold.trading.settlement.store import list_open
from billfold.trading.store import list_exposure, list_results

BAD_DAYS = {
    "dealer-down": "no dealer's session is on",
    "half-filled": "FILLED in two executions, each booked once",
    "fill-resent": "is booked once, and the dealer's recap of",
    "fill-after-cancel": "with the warning AFTER_END",
    "bust-next-morning": "its instruction CANCELLED, and a new order FILLED",
    "price-away": "with the warning PRICE",
    "custodian-rejects": "REJECTED: DMON Another amount",
    "settlement-fails": "1000 of ",
    "unknown-line": "break UNKNOWN_LINE of ",
    "missing-line": "25000000 cents that the statement does not have",
    "cent-off": "25000001 cents stated, 25000000 booked",
    "holdings-short": "break DIFFERENT_UNITS of ",
    "wires-wait": "twelve wires of $5,000.00 that wait",
    "prices-stop": "prices are too old",
    "holiday": "MATCHED. It is no fail",
    "worker-dies": "FILLED by ",
}
SATURDAY = 5
_CLOSED = "SELECT day FROM calendar_override WHERE bond_market = 'closed'"
_BOOKED = "SELECT dealer, reference, business_date FROM execution"


@pytest.fixture(scope="module")
def sandbox(memory_folder):
    """A running sandbox that has not played its story."""
    running = Sandbox(memory_folder, "--seed", 7, "--no-story")
    try:
        yield running.wait_up()
    finally:
        running.end()


@pytest.fixture(scope="module")
def http(sandbox):
    """Its Partner API."""
    with partner_http(sandbox.home()) as client:
        yield client


@pytest.mark.parametrize("name", BAD_DAYS)
def test_a_bad_day_ends_with_what_operators_see_and_a_clean_ledger(http, name):
    told = perform(http, f"scenarios/{name}/play/")
    assert BAD_DAYS[name] in " ".join(told)
    assert told[-1] == "Every row is as it was written."


async def test_the_files_from_outside_lead_to_the_figures_of_the_bank_after_all_bad_days(sandbox, http):
    if not (sandbox.state / "rails" / "statement" / "done").exists():  # no other test has run
        perform(http, "scenarios/cent-off/play/")
    pockets = [
        pocket["id"]
        for each in items(http, "/api/v1/customers/")
        for pocket in items(http, f"/api/v2/customers/{each['id']}/pockets/")
    ]
    trades = [row for each in pockets for row in items(http, f"/api/v2/pockets/{each}/trades/")]
    moved = [row for each in pockets for row in items(http, f"/api/v2/pockets/{each}/transactions/")]
    conn = await asyncpg.connect(host=str(sandbox.state / "postgres"), user="postgres", database="billfold")
    closed = [day for (day,) in await conn.fetch(_CLOSED)]
    oracle = Oracle(sandbox.state, trades, [row for row in moved if row["type"] == "WIRE"], closed)
    bank_id = await conn.fetchval("SELECT customer_id FROM trading_desk")
    results = {day: sum(each.total for each in await list_results(conn, bank_id, day)) for day in oracle.results()}
    async with conn.transaction():
        exposure = {each.cusip: each.units for each in await list_exposure(conn, bank_id, date.min) if each.units}
    still_open = {each.cusip: each.open_units for each in await list_open(conn, bank_id)}
    booked = {(dealer, reference): day for dealer, reference, day in await conn.fetch(_BOOKED)}
    await conn.close()
    late = {day for days in oracle.booked_late(booked) for day in days}
    theirs = oracle.results()
    assert any(results.values())
    assert sum(results.values()) == sum(theirs.values())
    assert len(late) < len(theirs) / 2
    assert {day: results[day] for day in theirs.keys() - late} == {day: theirs[day] for day in theirs.keys() - late}
    assert exposure == oracle.exposure()
    assert still_open == oracle.unsettled()
    assert oracle.balances()


def items(http, path):
    """Yield the items of all pages."""
    while path:
        page = http.get(path).raise_for_status().json()
        yield from page["items"]
        path = page["next_page"]


def test_a_bad_day_is_played_from_a_weekend_and_again_with_the_same_answers_after_a_rewind(http):
    assert {each for each, scenario in SCENARIOS.items() if scenario.is_bad_day} == set(BAD_DAYS)
    today = date.fromisoformat(http.get(f"{BOX}/clock/").json()["business_date"])
    saturday = today + timedelta(days=SATURDAY - today.weekday())
    http.post(f"{BOX}/clock/advance/", json={"until": f"{saturday}T22:00:00Z"}).raise_for_status()
    perform(http, "forks/", {"name": "saturday"})
    told = perform(http, "scenarios/fill-resent/play/")
    perform(http, "forks/saturday/rewind/")
    assert perform(http, "scenarios/fill-resent/play/") == told


def test_a_play_fails_when_operators_do_not_see_what_they_must(http):
    nothing_else: Any = None
    player = Player(RecordingClient(http, seed=b"another"), nothing_else, "Nobody", patience_seconds=0)
    with pytest.raises(CliError, match=r"2 orders \{'status': 'UNKNOWN'\} did not come"):
        player.see(of="orders", where={"status": "UNKNOWN"}, count=2)
    with pytest.raises(CliError, match="uncovered_units 1 did not come"):
        player.see(of="uncovered_units", where=1)
