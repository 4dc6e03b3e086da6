"""The options of `billfold bench`: which benchmarks to run, progress, a table, and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.cards import bench_cards
from benchmarks.console import bench_console
from benchmarks.day_end import bench_day_end
from benchmarks.documents import bench_documents
from benchmarks.dpop_reads import bench_bound_reads
from benchmarks.engine import bench_engine
from benchmarks.measurements import Log, Result, busy_percent, machine
from benchmarks.onboarding import bench_onboarding
from benchmarks.payments import bench_payments
from benchmarks.peers.comparison import bench_peers
from benchmarks.peers.ledgers import Address, Blnk, Formance, Ledger
from benchmarks.reads import bench_reads
from benchmarks.report import as_markdown, print_result
from benchmarks.sizes import QUICK_SCALE, RUNS, Sizes, sizes_at
from benchmarks.throwaway_server import Database, throwaway_server
from benchmarks.transfers import bench_transfers
from benchmarks.webhooks import bench_webhooks
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z

Benchmark = Callable[[Database, Sizes, Log], Result]
BENCHMARKS: Mapping[str, Benchmark] = {
    "engine": bench_engine,
    "transfers": bench_transfers,
    "reads": bench_reads,
    "day_end": bench_day_end,
    "webhooks": bench_webhooks,
    "payments": bench_payments,
    "onboarding": bench_onboarding,
    "cards": bench_cards,
    "documents": bench_documents,
    "console": bench_console,
}
PEERS = "peers"
"""Not one of `all`: it needs ledgers that somebody started beside the bank."""
ALL = "all"


class Auth(StrEnum):
    """How requests prove who asks, where a benchmark leaves the choice."""

    hmac = "hmac"
    dpop = "dpop"


app = typer.Typer(add_completion=False)


def _peer_option(text: str, envvar: str | None = None) -> Any:
    return typer.Option(help=text, envvar=envvar, rich_help_panel="Ledgers beside the bank, for peers")


@app.command("bench", epilog="Example:  billfold bench --quick")
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="engine, transfers, reads, day_end, webhooks, payments, onboarding, cards, documents, console, all,"
            " or peers, which needs --formance or --blnk.",
            show_default=ALL,
        ),
    ] = None,
    *,
    out_json: Annotated[Path | None, typer.Option("--json", help="Write every figure into this file.")] = None,
    out_markdown: Annotated[Path | None, typer.Option("--markdown", help="Write the tables into this file.")] = None,
    auth: Annotated[
        Auth, typer.Option(help="How reads prove who asks: signed by a partner, or bound to a key.")
    ] = Auth.hmac,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the sizes, for a first look.")] = False,
    formance: Annotated[str | None, _peer_option("URL of a Formance Ledger on this machine, over http.")] = None,
    formance_database: Annotated[str | None, _peer_option("URL of its PostgreSQL, best one of its own.")] = None,
    blnk: Annotated[str | None, _peer_option("URL of a Blnk server on this machine, over http.")] = None,
    blnk_database: Annotated[str | None, _peer_option("URL of its PostgreSQL, best one of its own.")] = None,
    blnk_redis: Annotated[str | None, _peer_option("URL of its Redis.")] = None,
    blnk_key: Annotated[str | None, _peer_option("Its API key, if it asks for one.", envvar="BLNK_API_KEY")] = None,
    state_dir: Annotated[
        Path, typer.Option(help="Where the throwaway database is made.", envvar="BILLFOLD_STATE_DIR")
    ] = Path(".billfold"),
) -> None:
    """Measure this machine on a database of its own; what is measured is gone afterwards."""
    ledgers: list[Ledger] = []
    if PEERS in (names or []) and not (formance or blnk):
        raise typer.BadParameter("Start a ledger on this machine and give its address with --formance or --blnk.")
    try:
        if formance:
            ledgers.append(Formance(Address(url=formance, database=formance_database)))
        if blnk:
            ledgers.append(Blnk(Address(url=blnk, key=blnk_key, database=blnk_database, redis=blnk_redis)))
        run(
            list(names or [ALL]),
            auth=auth,
            ledgers=ledgers,
            scale=QUICK_SCALE if quick else 1.0,
            state_dir=state_dir,
            out_json=out_json,
            out_markdown=out_markdown,
        )
    except UnknownBenchmarkError as error:
        raise typer.BadParameter(str(error)) from None
    except WorkloadError as error:
        Console(stderr=True).print(f"The benchmark broke off.\n{error}", markup=False)
        raise typer.Exit(1) from None


class UnknownBenchmarkError(ValueError):
    """A name that is no benchmark's; the text says which there are."""


def run(
    names: Sequence[str],
    *,
    auth: Auth = Auth.hmac,
    ledgers: Sequence[Ledger] = (),
    scale: float = 1.0,
    state_dir: Path,
    out_json: Path | None = None,
    out_markdown: Path | None = None,
    runs: int = RUNS,
    console: Console | None = None,
) -> dict[str, Any]:
    """Run benchmarks by name, print a table each, and return (and write) what was found.

    Raises UnknownBenchmarkError, and RaceError when a workload fails.
    """
    chosen = chosen_of(names)
    console = console or Console()
    sizes = sizes_at(scale, runs=runs)
    results = []
    for name in chosen:
        busy = busy_percent()
        with _progress(console) as progress, throwaway_server(state_dir) as database:
            result = _benchmark(name, auth, ledgers)(database, sizes, _log(progress, name))
        result.busy_before_percent = busy
        print_result(console, result)
        results.append(result)
    found = {
        "measured_at": iso_z(wall_now()),
        "machine": machine(),
        "scale": scale,
        "runs": runs,
        "benchmarks": {each.name: msgspec.to_builtins(each) for each in results},
    }
    if out_markdown is not None:
        out_markdown.write_text(as_markdown(results))
    if out_json is not None:
        out_json.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
        console.print(f"Written to {out_json}")
    return found


def _benchmark(name: str, auth: Auth, ledgers: Sequence[Ledger]) -> Benchmark:
    if name == PEERS:
        return partial(bench_peers, ledgers=ledgers)
    return bench_bound_reads if (name, auth) == ("reads", Auth.dpop) else BENCHMARKS[name]


def chosen_of(names: Sequence[str]) -> list[str]:
    """Return the benchmarks in their own order. Raises UnknownBenchmarkError."""
    known = (*BENCHMARKS, PEERS, ALL)
    for name in names:
        if name.replace("-", "_") not in known:
            raise UnknownBenchmarkError(f"{name!r} is none of {', '.join(known)}")
    wanted = {name.replace("-", "_") for name in names}
    return [name for name in (*BENCHMARKS, PEERS) if name in wanted or (ALL in wanted and name != PEERS)]


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("[bold]{task.fields[name]}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        refresh_per_second=2,  # what it draws is taken from the measured
    )


def _log(progress: Progress, name: str) -> Log:
    task = progress.add_task("starting the database", name=name, total=None)

    def log(text: str) -> None:
        progress.update(task, description=text)

    return log
