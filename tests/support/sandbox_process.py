"""A whole sandbox in a separate process, and its tasks."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
from tests.support.databases import owner_of

import billfold
from billfold.sandbox.control.socket import control_socket
from billfold.sandbox.control.tasks import SandboxTasks
from billfold.sandbox.forks.copies import BankCopies, BankFiles, Databases
from billfold.sandbox.running_sandbox import SandboxFile

START_SECONDS = 180
BOX = "/api/v1/sandbox"
TOO_MANY = 429
SOURCE = Path(billfold.__file__).parents[1]
PROGRAM = Path(sys.executable).with_name("billfold")


def free_ports(count):
    """Return ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Sandbox:
    """A sandbox in a folder of its own, as a person starts it; `settings` are variables of its environment."""

    def __init__(self, folder, *options, ports=(), **settings):
        self.state = folder / ".billfold"
        self.port, self.http_port = ports or free_ports(2)
        self.said = folder / "said.txt"
        words = ["sandbox", "--port", self.port, "--http-port", self.http_port, *options]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BILLFOLD_")}
        with self.said.open("wb") as out:
            self.process = subprocess.Popen(
                [PROGRAM, *map(str, words)],
                cwd=folder,
                stdout=out,
                stderr=out,
                env={**environment, **settings, "PYTHONPATH": str(SOURCE), "COLUMNS": "200"},
            )

    def wait_up(self):
        deadline = time.monotonic() + START_SECONDS
        while "The bank is open" not in self.said.read_text():
            assert self.process.poll() is None, self.said.read_text()
            assert time.monotonic() < deadline, self.said.read_text()
            time.sleep(0.1)
        return self

    def home(self):
        return msgspec.json.decode((self.state / "sandbox.json").read_bytes(), type=SandboxFile)

    def run(self, *words):
        """Start another command in the folder of the sandbox."""
        return subprocess.Popen(
            [PROGRAM, *map(str, words)],
            cwd=self.state.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"},
        )

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)


def perform(http, path, body=None):
    """Request a task; return the results of its steps. Requests sent meanwhile are answered, or get 503."""
    request = http.post(f"{BOX}/{path}", json=body)
    while request.status_code == TOO_MANY:
        time.sleep(int(request.headers["retry-after"]))
        request = http.post(f"{BOX}/{path}", json=body)
    assert request.status_code == 202, request.text
    task = request.json()
    while task["status"] == "RUNNING":
        time.sleep(0.25)  # within the rate limit, however long it takes
        response = http.get(f"{BOX}/tasks/{task['id']}/")
        assert response.status_code in {200, 503, TOO_MANY}
        task = response.json() if response.is_success else task
    assert task["status"] == "COMPLETED", task
    return [step["detail"] for step in task["steps"]]


CLOCK = """
CREATE TABLE clock (singleton boolean, business_anchor timestamptz, wall_anchor timestamptz, frozen boolean);
INSERT INTO clock VALUES (true, '2025-06-02 13:00Z', '2026-01-01Z', true)
"""


class FakeServices:
    """A sandbox without other processes."""

    @asynccontextmanager
    async def without_counterparts(self):
        yield

    async def upgrade(self, dsn):
        pass

    def after_rewind(self):
        pass

    async def play(self, name, progress):
        progress.begin("Verifying the ledger")


@asynccontextmanager
async def performing_tasks(bank):
    """Do the tasks that are requested of the bank, on a database that has a clock and nothing else."""
    async with owner_of(bank) as conn:
        sockets, port = await conn.fetchrow(
            "SELECT current_setting('unix_socket_directories'), current_setting('port')"
        )
        name = f"tasks_{await conn.fetchval('SELECT pg_backend_pid()')}"
    dsn = f"postgresql://postgres@/{name}?host={sockets}&port={port}"
    server = await asyncpg.connect(dsn, database="postgres")
    await server.execute(f"CREATE DATABASE {name}")
    conn = await asyncpg.connect(dsn)
    await conn.execute(CLOCK)
    await conn.close()
    databases, folder = Databases(dsn), bank.settings.state_dir
    folder.mkdir(exist_ok=True)
    tasks = SandboxTasks(BankCopies(folder, databases, BankFiles(folders={}, files={})), FakeServices())
    try:
        async with control_socket(folder, tasks.answer):
            yield
    finally:
        await tasks.close()
        await databases.drop(databases.bank, *await databases.list_own())
        await server.close()
