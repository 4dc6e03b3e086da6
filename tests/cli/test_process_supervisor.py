"""Children under supervision: started again when they die, ended together."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from billfold.cli import process_supervisor
from billfold.cli.context import CliError
from billfold.cli.process_supervisor import Supervisor, stop_on_signals

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
STUBBORN = (sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
TOLD: list[str] = []


@pytest.fixture
async def supervisor():
    made = Supervisor(dict(os.environ), TOLD.append, watch=lambda: None)
    TOLD.clear()
    yield made
    await made.stop()


async def until(holds, seconds=10):
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to that")


async def test_a_killed_child_is_restarted(supervisor, monkeypatch):
    monkeypatch.setattr(process_supervisor, "RESTART_SECONDS", 0.05)
    child = await supervisor.start("sleeper", SLEEPER)
    first = child.process.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.starts == 2)
    assert child.process.pid != first
    assert psutil.pid_exists(child.process.pid)
    assert "sleeper" in TOLD[0]


async def test_a_child_writes_to_its_log(supervisor, tmp_path):
    log = tmp_path / "logs" / "child.log"
    words = (sys.executable, "-c", "print('here', flush=True); import time; time.sleep(600)")
    await supervisor.start("writer", words, log)
    await until(lambda: log.exists() and "here" in log.read_text())


async def test_stopping_the_supervisor_ends_every_child(supervisor):
    children = [await supervisor.start(f"sleeper {n}", SLEEPER) for n in range(2)]
    await supervisor.stop()
    assert not any(psutil.pid_exists(child.process.pid) for child in children)


async def test_a_child_that_ignores_sigterm_is_killed(supervisor, monkeypatch):
    monkeypatch.setattr(process_supervisor, "STOP_SECONDS", 0.5)
    child = await supervisor.start("stubborn", STUBBORN)
    await asyncio.sleep(0.5)  # until it ignores the signal
    await supervisor.stop()
    assert not psutil.pid_exists(child.process.pid)


async def test_the_supervisor_watch_continues_after_an_error(monkeypatch):
    monkeypatch.setattr(process_supervisor, "WATCH_SECONDS", 0.01)
    watched: list[int] = []
    told: list[str] = []

    def watch():
        watched.append(1)
        raise CliError("The database is gone.", "It is tried again.")

    supervisor = Supervisor(dict(os.environ), told.append, watch=watch)
    await supervisor.start("sleeper", SLEEPER)
    await until(lambda: len(watched) >= 3)
    await supervisor.stop()
    assert told[0] == "The database is gone. It is tried again."


ORPHANED = "import os\nwhile os.getppid() == int(os.environ['SUPERVISOR_PID']): time.sleep(0.01)\n"


@pytest.mark.parametrize(("before", "after"), [("", ""), (ORPHANED, ""), ("", "signal.signal(15, signal.SIG_IGN)\n")])
def test_a_process_exits_when_its_parent_is_killed(tmp_path, before, after):
    """Also while it is starting, and if it does not listen."""
    child, parent = tmp_path / "child.py", tmp_path / "parent.py"
    child.write_text(
        "import signal, time\n"
        "from billfold.cli import process_supervisor\n"
        "process_supervisor.WATCH_SECONDS = process_supervisor.STOP_SECONDS = 0.05\n"
        f"print('up', flush=True)\n{before}{after}"
        "process_supervisor.exit_with_parent()\n"
        "print('watching', flush=True)\n"
        "time.sleep(600)\n"
    )
    parent.write_text(
        "import asyncio, os, sys\n"
        "from billfold.cli.process_supervisor import Supervisor\n"
        "async def main():\n"
        "    supervisor = Supervisor(os.environ, print, watch=lambda: None)\n"
        f"    child = await supervisor.start('child', (sys.executable, {str(child)!r}))\n"
        "    print(child.process.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(process_supervisor.__file__).parents[2])}
    with subprocess.Popen([sys.executable, parent], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        orphan = psutil.Process(int(process.stdout.readline()))
        for line in ("up", *([] if before else ["watching"])):
            assert process.stdout.readline().strip() == line
        process.kill()
        orphan.wait(10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_termination_signal_stops_the_server(number):
    stop = stop_on_signals()
    os.kill(os.getpid(), number)
    await asyncio.wait_for(stop.wait(), 10)
