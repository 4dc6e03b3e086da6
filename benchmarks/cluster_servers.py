"""The nodes of a Citus cluster, each with its archive, to be killed, promoted, added and restored.

Made with the programs of a PostgreSQL that has Citus; they listen on 127.0.0.1 alone, on free ports.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import asyncpg
import psutil

from benchmarks.server import free_ports
from benchmarks.worker_processes import WorkloadError
from billfold.platform.database.embedded_programs import ServerUser

COORDINATOR, WORKERS, ADDED = "coordinator", ("worker1", "worker2"), "worker3"
DATABASE = "billfold"
_SETTINGS = """
shared_preload_libraries = 'citus'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 100
max_prepared_transactions = 200
max_worker_processes = 40
shared_buffers = 64MB
wal_level = logical
archive_mode = on
archive_command = 'test -f {archive}/%f || cp %p {archive}/%f'
restore_command = 'cp {archive}/%f %p'
citus.shard_count = 8
timezone = UTC
"""
_RESTORE_POINT = """
CREATE FUNCTION create_restore_point(name text) RETURNS pg_lsn LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog AS 'SELECT citus_create_restore_point(name)'
"""


class ClusterServers:
    """A coordinator and its workers below a folder, by name."""

    def __init__(self, folder: Path, programs: Path, more_settings: str = "", *, workers: int = len(WORKERS)) -> None:
        self.names = (COORDINATOR, *(f"worker{nth}" for nth in range(1, workers + 1)))
        self._folder = folder
        self._settings = _SETTINGS + more_settings
        self.programs = programs
        self.ports: dict[str, int] = {}
        self._owner = ServerUser.of(folder / "none", lambda _: None)
        self._owner.allow_traversal(folder / COORDINATOR)

    def address(self, *names: str) -> str:
        """Return the address of the bank's database on servers."""
        hosts = ",".join(f"127.0.0.1:{self.ports[name]}" for name in names)
        return f"postgresql://postgres@{hosts}/{DATABASE}"

    async def start(self) -> None:
        """Make all nodes and join them."""
        for name in self.names:
            await self.make(name)
        await self.run(COORDINATOR, f"SELECT citus_set_coordinator_host('127.0.0.1', {self.ports[COORDINATOR]})")
        for name in self.names[1:]:
            await self.add(name)
        await self.run(COORDINATOR, _RESTORE_POINT)

    async def make(self, name: str) -> None:
        """Make and start a server with the extension and the role of the application."""
        path = self._new_folder(name)
        self._program("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", "postgres", "-D", str(path))
        archive = self._new_folder(f"{name}-archive")
        with (path / "postgresql.conf").open("a") as config:
            config.write(self._settings.format(archive=archive))
        self.run_server(name)
        conn = await asyncpg.connect(self.address(name).replace(f"/{DATABASE}", "/postgres"))
        await conn.execute("CREATE ROLE billfold_app LOGIN")
        await conn.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
        await conn.close()
        await self.run(name, "CREATE EXTENSION citus")

    async def add(self, name: str) -> None:
        """Join a worker to the cluster."""
        await self.run(COORDINATOR, f"SELECT citus_add_node('127.0.0.1', {self.ports[name]})")

    async def run(self, name: str, statement: str, *values: Any) -> Any:
        """Run a statement on a server as its administrator; return its first value."""
        conn = await asyncpg.connect(self.address(name))
        try:
            return await conn.fetchval(statement, *values)
        finally:
            await conn.close()

    async def replicate(self, name: str) -> None:
        """Give a node a standby that its commits wait for."""
        standby = f"{name}-standby"
        self._copy(name, self._new_folder(standby), "--write-recovery-conf", application=standby)
        self.run_server(standby)
        await self.run(name, f"ALTER SYSTEM SET synchronous_standby_names = '\"{standby}\"'")
        await self.run(name, "SELECT pg_reload_conf()")

    def back_up(self, name: str) -> None:
        """Take a base backup of a node, without the log, which is in its archive."""
        self._copy(name, self._new_folder(f"{name}-backup"), application="backup")

    async def archive_all(self) -> None:
        """Return when what has been written is in the archives."""
        for name in self.names:
            segment = await self.run(name, "SELECT pg_walfile_name(pg_switch_wal())")
            while not (self._folder / f"{name}-archive" / segment).exists():
                await asyncio.sleep(0.1)

    def restore(self, name: str, point: str) -> None:
        """Restore a node that is gone, from its backup and its archive, to a restore point; return when it is open."""
        (self._folder / name).rename(self._folder / f"{name}-lost")
        path = (self._folder / f"{name}-backup").rename(self._folder / name)
        with (path / "postgresql.conf").open("a") as config:
            config.write(f"recovery_target_name = '{point}'\nrecovery_target_action = promote\n")
        (path / "recovery.signal").touch()
        self.run_server(name)
        while self._query(name, "SELECT pg_is_in_recovery()") != "f":
            sleep(0.1)

    def pid(self, name: str) -> int:
        """Return the process of a server that its other processes are children of."""
        return int((self._folder / name / "postmaster.pid").read_text().splitlines()[0])

    def kill(self, name: str) -> None:
        """Kill a server as a crash would."""
        psutil.wait_procs(self.signal(name, signal.SIGKILL), timeout=10)

    def signal(self, name: str, number: int) -> list[psutil.Process]:
        """Send a signal to all processes of a server, and return them."""
        server = psutil.Process(self.pid(name))
        processes = [server, *server.children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)
        return processes

    def promote(self, name: str) -> str:
        """Promote the standby of a node; return its name."""
        standby = f"{name}-standby"
        self._program("pg_ctl", "promote", "-w", "-t", "30", "-D", str(self._folder / standby))
        return standby

    def stop(self) -> None:
        """Stop all servers, in any state."""
        for name in self.ports:
            with suppress(WorkloadError):
                self._program("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self._folder / name))

    def run_server(self, name: str) -> None:
        """Start a server on its port."""
        path = self._folder / name
        port = self.ports.setdefault(name, *free_ports(1))
        options = f"-c port={port}"
        self._program(
            "pg_ctl", "start", "-w", "-t", "300", "-D", str(path), "-l", str(path / "server.log"), "-o", options
        )

    def _query(self, name: str, statement: str) -> str:
        return self._program("psql", "-At", "-d", self.address(name), "-c", statement).strip()

    def _copy(self, name: str, to: Path, *options: str, application: str) -> None:
        source = f"host=127.0.0.1 port={self.ports[name]} user=postgres application_name={application}"
        self._program("pg_basebackup", f"--dbname={source}", f"--pgdata={to}", "--checkpoint=fast", *options)

    def _new_folder(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(mode=0o700)
        self._owner.take(path)
        return path

    def _program(self, name: str, *arguments: str) -> str:
        output = self._folder / "program.log"
        with output.open("wb") as file:  # a server keeps its end of a pipe open
            ended = subprocess.run(
                [str(self.programs / name), *arguments],
                check=False,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "LD_LIBRARY_PATH": str(self.programs.parent / "lib")},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                user=self._owner.user,
                group=self._owner.group,
                extra_groups=None if self._owner.group is None else [],
            )
        text = output.read_text()
        if ended.returncode:
            raise WorkloadError(f"{name} {' '.join(arguments)}: {text}")
        return text
