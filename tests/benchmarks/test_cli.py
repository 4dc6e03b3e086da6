"""Every benchmark at the smallest size runs, counts and reports its measurements."""

import msgspec
import pytest
from typer.testing import CliRunner

from benchmarks import cli, console, startup, transfers
from benchmarks.measurements import Result, figure
from benchmarks.report import as_markdown
from billfold.web.app import page_routes

TINY = 0.001
WALKED = {"/", "/bank", "/companies/{customer_id:str}"}
"""Of the pages of the console; tests/journeys walks all of them."""


def walked_routes(package):
    return [each for each in page_routes(package) if each.paths & WALKED]


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("payments", {"wires queued, 2 processes": "bare transfers", "ACH file booked, 100 entries": None}),
        ("day_end", {"per pocket, of 100": "per pocket, of 20", "day end of 100 pockets": None}),
        (
            "reads",
            {
                "pocket, long history": "empty answer",
                "earnings: long against short": "earnings, short history",
                "rows verified": None,
            },
        ),
        ("onboarding", {"created to approved": "bare transfers"}),
        ("cards", {"authorizations": "whole transfers", "p99 at half load": "p99 of a decision alone"}),
        ("console", {"/companies/{customer_id:str}, p50": "/health, p50", "/bank, p99": None}),
        ("startup", {"worker, ready": "20 million additions", "worker, at rest": None}),
        ("transfers", {"transfers, 1 worker": "bare transfers", "p99 at half load, 2 workers": None}),
        (
            "webhooks",
            {
                "deliveries, 8 more receivers hang": "deliveries",
                "memory, 100 undelivered": "memory, 8 undelivered",
            },
        ),
    ],
)
def test_benchmark_figures_are_compared_with_their_baselines(
    name, compared, state_dir, shared_server, capsys, monkeypatch
):
    monkeypatch.setattr(startup, "REST_SECONDS", 0.1)
    monkeypatch.setattr(startup, "_ADD", "pass")
    monkeypatch.setattr(transfers, "COST_CONNECTIONS", (1, 16))
    monkeypatch.setattr(transfers, "COST_REQUESTS_MIN", 20)
    monkeypatch.setattr(console, "LOADS", 1)
    monkeypatch.setattr(console, "page_routes", walked_routes)
    if name != "startup":
        monkeypatch.setattr(cli, "throwaway_server", shared_server)
    # The first run of processes that start, which only compiles them, comes before those that are counted.
    found = cli.run([name], scale=TINY, runs=0 if name == "startup" else 1, state_dir=state_dir)
    assert list(state_dir.iterdir()) == [], "it cleans up"
    printed = capsys.readouterr()
    assert f"### `billfold bench {name}`" in printed.out
    assert f"{name}: " in printed.err
    assert found["machine"]["cores"] >= 1
    figures = {each["name"]: each for each in found["benchmarks"][name]["figures"]}
    assert {figure_name: figures[figure_name]["baseline"] for figure_name in compared} == compared
    # The kernel counts processor time in hundredths of a second: a few requests may take none.
    assert all(each["median"] > 0 or "CPU" in each["name"] + each["unit"] for each in figures.values())
    assert all(f"| {each} |" in printed.out for each in figures)


def test_figures_are_written_to_the_output_file_when_given(tmp_path, state_dir, monkeypatch):
    result = Result(name="reads", setting={}, figures=[], peak_memory_mib={})
    monkeypatch.setitem(cli.BENCHMARKS, "reads", lambda _: result)
    path = tmp_path / "figures.json"
    answer = CliRunner().invoke(cli.app, ["reads", "--quick", "--json", str(path), "--state-dir", str(state_dir)])
    assert answer.exit_code == 0, answer.output
    found = msgspec.json.decode(path.read_bytes())
    assert (found["scale"], found["benchmarks"]["reads"]["figures"]) == (0.1, [])


def test_an_unknown_benchmark_is_refused_with_the_list_of_benchmarks():
    answer = CliRunner().invoke(cli.app, ["engines"])
    assert answer.exit_code == 2
    assert "day_end" in answer.output


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(["all"], list(cli.BENCHMARKS)), (["day-end", "reads"], ["reads", "day_end"])],
)
def test_benchmarks_run_in_their_defined_order(names, chosen):
    assert cli.chosen_of(names) == chosen


def test_markdown_holds_every_figure():
    base = figure("bare", "per second", [1000.0])
    whole = figure("whole", "per second", [50.0], against=base, at_least=0.6)
    result = Result(name="cards", setting={"customers": 2}, figures=[base, whole], peak_memory_mib={"engine": 99.6})
    text = as_markdown(result)
    assert "| whole | 50.00 | per second | 0.05x | >= 0.6x | no |" in text
    assert "Setting: customers 2." in text
    assert "Peak memory: engine 100 MiB." in text
    assert "busy" not in text
