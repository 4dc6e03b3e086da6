"""Every benchmark at the smallest size: that it runs, counts, and says what it measured."""

import io

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import cli as bench
from benchmarks.cli import Auth
from benchmarks.long_history import shared_out
from benchmarks.measurements import Result, figure
from benchmarks.report import as_markdown, print_result
from benchmarks.sizes import sizes_at

TINY = 0.001


def measured(name, state_dir, tmp_path, auth=Auth.hmac, title=None):
    """Run one benchmark once and return its chapter, as read back from the file."""
    out = io.StringIO()
    path = tmp_path / "figures.json"
    found = bench.run(
        [name], auth=auth, scale=TINY, runs=1, state_dir=state_dir, out_json=path, console=Console(file=out, width=200)
    )
    assert msgspec.json.decode(path.read_bytes()) == msgspec.json.decode(msgspec.json.encode(found))
    assert list(state_dir.iterdir()) == [], "it cleans up"
    assert f"billfold bench {title or name}" in out.getvalue()
    assert found["machine"]["cores"] >= 1
    return found["benchmarks"][title or name]


@pytest.mark.parametrize(
    ("name", "auth", "compared"),
    [
        ("payments", Auth.hmac, {"wires queued, 2 processes": "bare transfers", "ACH file booked, 100 entries": None}),
        ("day_end", Auth.hmac, {"per pocket, of 100": "per pocket, of 20", "day end of 100 pockets": None}),
        (
            "reads",
            Auth.hmac,
            {
                "pocket, long history": "empty answer",
                "earnings: long beside short": "earnings, short history",
            },
        ),
        ("reads", Auth.dpop, {"a pocket, by DPoP": "empty answer", "a check of a proof": None}),
        ("onboarding", Auth.hmac, {"created to approved": "bare transfers", "uploads": "a bare file"}),
        ("cards", Auth.hmac, {"authorisations": "whole transfers", "p99 at half load": "p99 of a decision alone"}),
        ("transfers", Auth.hmac, {"transfers, 1 worker": "bare transfers", "p99 at half load, 2 workers": None}),
        (
            "webhooks",
            Auth.hmac,
            {
                "deliveries, 8 more receivers hang": "deliveries",
                "memory, 100 undelivered": "memory, 8 undelivered",
                "whole transfers beside deliveries": "whole transfers alone",
            },
        ),
    ],
    ids=lambda each: str(each) if isinstance(each, str) else "",
)
def test_figures_stand_beside_their_baselines(name, auth, compared, state_dir, tmp_path):
    title = f"{name} --auth dpop" if auth is Auth.dpop else name
    result = measured(name, state_dir, tmp_path, auth, title)
    figures = {each["name"]: each for each in result["figures"]}
    assert {figure_name: figures[figure_name]["baseline"] for figure_name in compared} == compared
    # The kernel counts processor time in hundredths of a second: a few requests may take none.
    assert all(each["median"] > 0 or each["name"].startswith("CPU of") for each in figures.values())
    assert any(each["at_least"] or each["at_most"] for each in figures.values()), "something must be reached"


def test_an_engine_writes_eight_rows_and_a_new_lot_per_transfer(state_dir, tmp_path):
    result = measured("engine", state_dir, tmp_path)
    medians = {each["name"]: each["median"] for each in result["figures"]}
    assert medians["ledger rows, 1 process"] / medians["whole transfers, 1 process"] == pytest.approx(8, rel=0.05)
    assert result["setting"]["new lots per transfer"] == 1
    assert result["peak_memory_mib"]["engine"] > 10


def test_command_line_names_the_benchmarks_when_it_does_not_know_one():
    answer = CliRunner().invoke(bench.app, ["engines"])
    assert answer.exit_code == 2
    assert "day_end" in answer.output


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(["all"], list(bench.BENCHMARKS)), (["day-end", "engine"], ["engine", "day_end"])],
)
def test_benchmarks_run_in_their_own_order(names, chosen):
    assert bench.chosen_of(names) == chosen


def test_markdown_holds_every_figure():
    base = figure("bare", "per second", [1000.0])
    whole = figure("whole", "per second", [50.0], against=base, at_least=0.6)
    result = Result(name="engine", setting={"customers": 2}, figures=[base, whole], peak_memory_mib={"engine": 99.6})
    text = as_markdown([result])
    assert "| whole | 50.00 | per second | 0.05x | >= 0.6x | no |" in text
    assert "Setting: customers 2." in text
    assert "Peak memory: engine 100 MiB." in text


def test_busy_machine_is_told_of():
    out = io.StringIO()
    result = Result(name="engine", setting={}, figures=[], peak_memory_mib={}, busy_before_percent=80.0)
    print_result(Console(file=out), result)
    assert "80 % busy" in out.getvalue()


def test_customers_stay_even_when_scaled_since_they_are_paired():
    assert all(sizes_at(n / 997).customers % 2 == 0 for n in range(1, 100))


def test_history_is_shared_out_evenly():
    assert shared_out(10, 4) == [2, 3, 2, 3]
    assert sum(shared_out(1_000_000, 240)) == 1_000_000
