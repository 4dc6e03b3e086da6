"""The options of `billfold simulate`: which seeds, how long a life, and how many faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from billfold.platform.database import embedded
from simulation.boundary import run_again_with_fixed_hashes
from simulation.faults import Plan
from simulation.run import SERVER_SETTINGS, Ground, Outcome, Plans, Simulation

MEMORY = Path("/dev/shm")  # noqa: S108 - nothing of a simulation is to be kept
BROKEN = "seeds that failed"
app = typer.Typer(add_completion=False)


@app.command("simulate", epilog="Example:  billfold simulate --seed 7")
def simulate(
    *,
    seed: Annotated[int | None, typer.Option(help="The one seed to run.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Seeds to run, as FROM-TO.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Run seeds until this time is over.")] = None,
    commands: Annotated[int, typer.Option(help="Requests that each seed's customers have answered.")] = 200,
    years: Annotated[float, typer.Option(help="How far the bank's clock advances, about.")] = 0.02,
    faults: Annotated[float, typer.Option(help="The chance of a fault per statement and message.")] = 0.01,
    first: Annotated[bool, typer.Option(help="End with the first seed that fails.")] = False,
    twice: Annotated[bool, typer.Option(help="Run each seed twice and compare.")] = False,
    plan: Annotated[list[str] | None, typer.Option(help="A fault: NTH:FATE:SQL, as 3:answer lost:COMMIT.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Write every statement to this file.")] = None,
) -> None:
    """Run the whole bank on a seeded loop with faults at every step; print what breaks and how to replay it.

    With --minutes one process for each core runs seeds of its own.
    """
    run_again_with_fixed_hashes()
    begin, last = (seed, seed) if seed is not None else map(int, (seeds or "1-1000000").split("-"))
    began, cores = time.monotonic(), 1 if minutes is None else os.cpu_count() or 1
    until = inf if minutes is None else began + 60 * minutes
    planned = tuple(map(Plan.parse, plan or ()))
    plans = Plans(begin, commands, years, faults, planned, log=None if trace is None else str(trace))
    run = partial(run_seeds, plans, until=until, first=first, twice=twice)
    with ProcessPoolExecutor(cores, get_context("fork")) as pool:
        totals = list(pool.map(run, (range(begin + core, last + 1, cores) for core in range(cores))))
    total = sum(totals, Counter())
    _print_figures(total, time.monotonic() - began)
    raise typer.Exit(1 if total[BROKEN] else 0)


def run_seeds(plans: Plans, seeds: range, *, until: float, first: bool, twice: bool) -> Counter[str]:
    """Run these seeds one after the other until the time is over; return the sums of what happened."""
    total = Counter[str]()
    with ground() as founded:
        for number in seeds:
            if (first and total[BROKEN]) or time.monotonic() > until:
                break
            mine = replace(plans, seed=number)
            outcome = run_apart(founded, mine)
            again = outcome
            if twice:
                again = run_apart(founded, replace(mine, log=plans.log and f"{plans.log}.again"))
            if again.digest != outcome.digest:
                outcome.failure = f"the second run differs: {outcome.digest} {again.digest}"
            total += Counter(acknowledged=outcome.acknowledged, deaths=outcome.deaths) + Counter(outcome.faults)
            typer.echo(_line(outcome))
            if outcome.failure:
                total[BROKEN] += 1
                typer.echo(f"  refused: {outcome.refused}")
                typer.echo(f"  {outcome.failure}\n  commit {_commit()}, replay: {_replay(mine)}")
    return total


def _line(outcome: Outcome) -> str:
    return (
        f"seed {outcome.seed}: {'FAILED' if outcome.failure else 'held'}, {outcome.acknowledged} acknowledged,"
        f" {outcome.deaths} deaths, {outcome.statements} statements, {outcome.virtual_seconds:.0f} virtual seconds,"
        f" step {outcome.steps}, trace {outcome.digest}"
    )


def _replay(plans: Plans) -> str:
    planned = "".join(f" --plan '{each.nth}:{each.fate}:{each.sql}'" for each in plans.plans)
    size = f"--commands {plans.commands} --years {plans.years} --faults {plans.rate}"
    return f"billfold simulate --seed {plans.seed} {size}{planned}"


def _commit() -> str:
    git = shutil.which("git") or "git"
    told = subprocess.run((git, "rev-parse", "--short", "HEAD"), capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def _print_figures(total: Counter[str], seconds: float) -> None:
    for name, number in sorted(total.items()):
        typer.echo(f"{number:>9}  {name}")
    hourly = 3600 / seconds
    commands, deaths = total["acknowledged"] * hourly, total["deaths"] * hourly
    typer.echo(f"An hour at this rate: {commands:.0f} acknowledged, {deaths:.0f} deaths")


@contextmanager
def ground() -> Iterator[Ground]:
    """Start a throwaway server with a founded bank."""
    folder = Path(tempfile.mkdtemp(prefix="billfold-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
    server = embedded.start(folder / "server", settings={**embedded.THROWAWAY_SETTINGS, **SERVER_SETTINGS})
    try:
        made = Ground(server, folder)
        made.prepare()
        yield made
    finally:
        embedded.stop(server)
        shutil.rmtree(folder, ignore_errors=True)


_names = count(1)


def run_apart(founded: Ground, plans: Plans) -> Outcome:
    """Run one simulation in a process of its own, in which nothing happened before."""
    name = f"simulated_{next(_names)}"
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            outcome = Simulation(founded, plans, name).run()
        except BaseException:  # noqa: BLE001 - it is told to the parent
            outcome = Outcome(plans.seed, "", 0, 0, 0, 0, 0.0, traceback.format_exc())
        with os.fdopen(writer, "wb") as out:
            out.write(msgspec.json.encode(outcome))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        answer = told.read()
    os.waitpid(child, 0)
    founded.drop(name)
    return msgspec.json.decode(answer, type=Outcome)
