"""The options of `billfold bench`: which benchmarks to run, at which size, and a file for the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from benchmarks.cards import bench_cards
from benchmarks.console import bench_console
from benchmarks.day_end import bench_day_end
from benchmarks.measurements import Result, busy_percent, machine
from benchmarks.onboarding import bench_onboarding
from benchmarks.payments import bench_payments
from benchmarks.peer_ledgers import Address, Blnk, Formance, Ledger
from benchmarks.peers import bench_peers
from benchmarks.reads import bench_reads
from benchmarks.report import as_markdown
from benchmarks.session import Session
from benchmarks.sizes import QUICK_SCALE, RUNS, sizes_at
from benchmarks.startup import bench_startup
from benchmarks.throwaway_server import throwaway_server
from benchmarks.transfers import bench_transfers
from benchmarks.webhooks import bench_webhooks
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z

BENCHMARKS: Mapping[str, Callable[[Session], Result]] = {
    "transfers": bench_transfers,
    "reads": bench_reads,
    "day_end": bench_day_end,
    "payments": bench_payments,
    "cards": bench_cards,
    "onboarding": bench_onboarding,
    "webhooks": bench_webhooks,
    "startup": bench_startup,
    "console": bench_console,
}
PEERS = "peers"
"""Not one of `all`: it needs ledgers that somebody started next to the bank."""
ALL = "all"

app = typer.Typer(add_completion=False)


def _peer_option(text: str, envvar: str | None = None) -> Any:
    return typer.Option(help=text, envvar=envvar, rich_help_panel="Ledgers next to the bank, for peers")


@app.command("bench", epilog="Example:  billfold bench --quick")
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{', '.join(BENCHMARKS)}, all, or peers, which needs --formance or --blnk.", show_default=ALL
        ),
    ] = None,
    *,
    out_json: Annotated[Path | None, typer.Option("--json", help="Write every figure into this file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the sizes, for a first impression.")] = False,
    formance: Annotated[str | None, _peer_option("URL of a Formance Ledger on this machine, over http.")] = None,
    blnk: Annotated[str | None, _peer_option("URL of a Blnk server on this machine, over http.")] = None,
    blnk_key: Annotated[str | None, _peer_option("Its API key, if it asks for one.", envvar="BLNK_API_KEY")] = None,
    state_dir: Annotated[
        Path, typer.Option(help="Where the throwaway database is made.", envvar="BILLFOLD_STATE_DIR")
    ] = Path(".billfold"),
) -> None:
    """Measure this machine on a temporary database. The tables are printed as Markdown, progress to stderr."""
    ledgers: list[Ledger] = []
    if PEERS in (names or []) and not (formance or blnk):
        raise typer.BadParameter("Start a ledger on this machine and give its address with --formance or --blnk.")
    try:
        if formance:
            ledgers.append(Formance(Address(url=formance)))
        if blnk:
            ledgers.append(Blnk(Address(url=blnk, key=blnk_key)))
        scale = QUICK_SCALE if quick else 1.0
        found = run(list(names or [ALL]), ledgers=ledgers, scale=scale, state_dir=state_dir)
    except UnknownBenchmarkError as error:
        raise typer.BadParameter(str(error)) from None
    except WorkloadError as error:
        typer.echo(f"The benchmark stopped.\n{error}", err=True)
        raise typer.Exit(1) from None
    if out_json is not None:
        out_json.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


class UnknownBenchmarkError(ValueError):
    """A name that is not a benchmark's; the text lists them."""


def run(
    names: Sequence[str], *, ledgers: Sequence[Ledger] = (), scale: float = 1.0, state_dir: Path, runs: int = RUNS
) -> dict[str, Any]:
    """Run benchmarks by name, print a table each, and return what was found.

    Raises UnknownBenchmarkError, and WorkloadError when a workload fails.
    """
    results = []
    for name in chosen_of(names):
        busy = busy_percent()
        benchmark = partial(bench_peers, ledgers=ledgers) if name == PEERS else BENCHMARKS[name]
        with ExitStack() as stack:
            database = stack.enter_context(throwaway_server(state_dir))
            result = benchmark(Session(database, sizes_at(scale, runs=runs), partial(_log, name), stack))
        result.busy_before_percent = busy
        typer.echo(as_markdown(result))
        results.append(result)
    return {
        "measured_at": iso_z(wall_now()),
        "machine": machine(),
        "scale": scale,
        "runs": runs,
        "benchmarks": {each.name: msgspec.to_builtins(each) for each in results},
    }


def chosen_of(names: Sequence[str]) -> list[str]:
    """Return the benchmarks in their own order. Raises UnknownBenchmarkError."""
    known = (*BENCHMARKS, PEERS, ALL)
    wanted = {name.replace("-", "_") for name in names}
    if unknown := wanted.difference(known):
        raise UnknownBenchmarkError(f"{', '.join(sorted(unknown))} is not one of {', '.join(known)}")
    return [name for name in (*BENCHMARKS, PEERS) if name in wanted or (ALL in wanted and name != PEERS)]


def _log(name: str, text: str) -> None:
    typer.echo(f"{name}: {text}", err=True)
