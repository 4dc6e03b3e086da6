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
from benchmarks.report import as_markdown, print_result, row_of
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


def figures_of(result):
    return {each["name"]: each for each in result["figures"]}


def test_engine_compares_whole_transfers_and_rows_with_bare_ones(state_dir, tmp_path):
    result = measured("engine", state_dir, tmp_path)
    figures = figures_of(result)
    assert figures["bare transfers"]["ratio"] is None
    whole = figures["whole transfers, 1 process"]
    rows = figures["ledger rows, 1 process"]
    assert whole["baseline"] == rows["baseline"] == "bare transfers"
    assert rows["median"] / whole["median"] == pytest.approx(8, rel=0.05)
    assert result["setting"]["new lots per transfer"] == 1
    judged = {each["at_least"] for each in result["figures"]} - {None}
    assert judged == {0.6, 5.0}
    assert result["peak_memory_mib"]["engine"] > 10


def test_payments_queue_a_message_for_every_wire_and_clear_a_file_each_way(state_dir, tmp_path):
    figures = figures_of(measured("payments", state_dir, tmp_path))
    variants = [figures["wires queued, 1 process"], figures["wires queued, 2 processes"]]
    assert {each["at_least"] for each in variants} == {0.4, None}
    assert all(each["ratio"] > 0 for each in variants)
    bounds = {name: each["at_most"] for name, each in figures.items() if "100 entries" in name}
    assert bounds == {
        "ACH window written, 100 entries": 10.0,
        "ACH window written, 100 entries: peak memory": 200.0,
        "customers told of it, 100 entries": None,
        "customers told of it, 100 entries: peak memory": None,
        "ACH file checked, 100 entries": 10.0,
        "ACH file checked, 100 entries: peak memory": 200.0,
        "ACH file booked, 100 entries": None,
        "ACH file booked, 100 entries: peak memory": None,
    }


def test_day_end_closes_every_size_and_compares_the_cost_of_a_pocket(state_dir, tmp_path):
    figures = figures_of(measured("day_end", state_dir, tmp_path))
    assert figures["day end of 100 pockets"]["at_most"] == 60.0
    assert figures["per pocket, of 100"]["baseline"] == "per pocket, of 20"
    assert figures["pockets closed, of 100"]["ratio"] > 0


def test_reads_compare_both_pasts_and_the_empty_answer(state_dir, tmp_path):
    result = measured("reads", state_dir, tmp_path)
    figures = figures_of(result)
    assert figures["pocket, long history"]["baseline"] == "empty answer"
    assert figures["earnings: long beside short"]["baseline"] == "earnings, short history"
    assert result["setting"]["long history"]["transactions"] >= 1000
    assert result["peak_memory_mib"]["server worker"] > 10


def test_reads_by_bound_tokens_are_held_against_the_empty_answer(state_dir, tmp_path):
    title = "reads --auth dpop"
    figures = figures_of(measured("reads", state_dir, tmp_path, auth=Auth.dpop, title=title))
    bound = figures["a pocket, by DPoP"]
    assert (bound["baseline"], bound["at_least"]) == ("empty answer", 0.2)
    assert bound["median"] > 0
    for check in ("a check of a proof", "a check of a proof by a key not seen before"):
        assert (figures[check]["unit"], figures[check]["at_most"]) == ("us", 500)


def test_transfers_compare_signed_ones_with_bare_ones_and_tell_latencies(state_dir, tmp_path):
    figures = figures_of(measured("transfers", state_dir, tmp_path))
    assert figures["transfers, 1 worker"]["baseline"] == "bare transfers"
    assert figures["p99 at half load, 2 workers"]["unit"] == "ms"
    assert figures["memory of a worker"]["at_most"] == 300


def test_command_line_names_the_benchmarks_when_it_does_not_know_one():
    answer = CliRunner().invoke(bench.app, ["engines"])
    assert answer.exit_code == 2
    assert "day_end" in answer.output


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["all"], ["engine", "transfers", "reads", "day_end", "webhooks", "payments"]),
        (["day-end", "engine"], ["engine", "day_end"]),
    ],
)
def test_benchmarks_run_in_their_own_order(names, chosen):
    assert bench.chosen_of(names) == chosen


def test_table_shows_ratio_and_bound():
    base = figure("bare", "per second", [1000.0])
    row = row_of(figure("whole", "per second", [650.0], against=base, at_least=0.6))
    assert row == ("whole", "650", "per second", "0.65x", ">= 0.6x", "yes")


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


def test_webhooks_compare_hanging_receivers_long_queues_and_the_engine_alone(state_dir, tmp_path):
    figures = figures_of(measured("webhooks", state_dir, tmp_path))
    assert figures["deliveries"]["at_least"] == 500.0
    assert figures["deliveries, 8 more receivers hang"]["baseline"] == "deliveries"
    assert figures["memory, 100 undelivered"]["baseline"] == "memory, 8 undelivered"
    assert figures["whole transfers beside deliveries"]["baseline"] == "whole transfers alone"
    assert figures["deliveries beside them"]["median"] > 0
