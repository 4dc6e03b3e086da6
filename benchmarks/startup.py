"""`billfold bench startup`: the CPU time of each process until it is ready, and its memory at rest.

The CPU time of imports is that of an interpreter, so the baseline is a loop of it in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from time import sleep

import psutil

from benchmarks.measurements import Figure, Result, figure
from benchmarks.server import Server, WorkerProcess
from benchmarks.session import Session
from billfold.cli.python_process import python_command

ADDITIONS = "20 million additions"
READY_MOST = 1.25
"""1.5 s of CPU time where the additions take 1.2 s."""
REST_MIB = 120.0
REST_SECONDS = 5.0
"""From the start of a worker until it has asked for every kind of work, and waits."""

_ADD = "x = 0\nfor i in range(20_000_000): x += i"
_NOTHING = "pass"
_MIB = 1024**2


def bench_startup(session: Session) -> Result:
    """Start every kind of process in turns, and return the figures."""
    location = session.database.location("startup")
    session.bank(location).call("partner")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed bank has its bytecode
    cpu, rest = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for number in range(session.sizes.runs + 1):
        if number == 1:  # the first run has written what was not compiled yet
            cpu.clear()
            rest.clear()
        session.log(f"run {number}")
        cpu[ADDITIONS].append(_cpu_of("-c", _ADD))
        cpu["python"].append(_cpu_of("-c", _NOTHING))
        cpu["--help"].append(_cpu_of("-m", "billfold", "--help"))
        with Server(location, command="serve") as server:
            supervisor, https, worker = _line_of(server.pid)
            cpu["serve, its supervisor"].append(_seconds(supervisor))
            cpu["serve, its https process and worker"].append(_seconds(https) + _seconds(worker))
            sleep(REST_SECONDS)
            rest["serve, its supervisor"].append(_mib(supervisor))
            rest["serve, its https process"].append(_mib(https))
            rest["serve, its worker"].append(_mib(worker))
        with WorkerProcess(location) as started:
            process = psutil.Process(started.pid)
            cpu["worker"].append(_seconds(process))
            sleep(REST_SECONDS)
            rest["worker"].append(_mib(process))
    return Result(
        name="startup",
        setting={"seconds at rest": REST_SECONDS},
        figures=[
            *_ready(cpu),
            *(figure(f"{name}, at rest", "MiB", runs, at_most=REST_MIB) for name, runs in rest.items()),
        ],
        peak_memory_mib=session.peaks(),
    )


def _ready(cpu: dict[str, list[float]]) -> list[Figure]:
    base = figure(ADDITIONS, "CPU s", cpu.pop(ADDITIONS))
    return [
        base,
        *(figure(f"{name}, ready", "CPU s", runs, against=base, at_most=READY_MOST) for name, runs in cpu.items()),
    ]


def _cpu_of(*words: str) -> float:
    """Return the CPU time of a whole Python process."""
    before = os.times()
    subprocess.run(python_command(*words), stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _line_of(pid: int) -> Sequence[psutil.Process]:
    """Return a process and its only child's children, from the first to the last."""
    line = [psutil.Process(pid)]
    while children := line[-1].children():
        (child,) = children
        line.append(child)
    return line


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / _MIB)
