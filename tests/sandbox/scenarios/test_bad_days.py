"""Every bad day of the trading desk on a running sandbox: it ends with what operators see, or fails."""

from datetime import date, timedelta

import pytest
from tests.support.sandbox_process import BOX, Sandbox, perform

from billfold.cli.context import CliError
from billfold.sandbox.running_sandbox import partner_http
from billfold.sandbox.scenarios.player import SCENARIOS, Player
from billfold.sandbox.scenarios.story import RecordingClient

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


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    """The Partner API of a running sandbox that has not played its story."""
    running = Sandbox(tmp_path_factory.mktemp("bad"), "--seed", 7, "--no-story")
    try:
        with partner_http(running.wait_up().home()) as client:
            yield client
    finally:
        running.end()


@pytest.mark.parametrize("name", BAD_DAYS)
def test_a_bad_day_ends_with_what_operators_see_and_a_clean_ledger(http, name):
    told = perform(http, f"scenarios/{name}/play/")
    assert BAD_DAYS[name] in " ".join(told)
    assert told[-1] == "Every row is as it was written."


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
    player = Player(RecordingClient(http, seed=b"another"), None, "Nobody", patience_seconds=0)
    with pytest.raises(CliError, match=r"2 orders \{'status': 'UNKNOWN'\} did not come"):
        player.see(of="orders", where={"status": "UNKNOWN"}, count=2)
    with pytest.raises(CliError, match="uncovered_units 1 did not come"):
        player.see(of="uncovered_units", where=1)
