"""A PostgreSQL with a streaming replica, made with the programs of the embedded one, to be killed and promoted.

Both listen on 127.0.0.1 alone, on ports that are free.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.server import free_ports
from billfold.platform.database.connection import connect
from billfold.platform.database.embedded_programs import EmbeddedPostgresError, ServerUser

_PRIMARY, _REPLICA = "one", "two"
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 100
shared_buffers = 128MB
timezone = UTC
"""
_FAST = "fsync = off\n"
POLL_SECONDS = 0.05
_KILL_SECONDS = 10


class ReplicatedServers:
    """A primary and its replica below a folder."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self._settings = _SETTINGS if durable else _SETTINGS + _FAST
        names = (_PRIMARY, _REPLICA)
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.owner = ServerUser.of(folder / "none", lambda _: None)
        self.owner.allow_traversal(folder / _PRIMARY)

    def address(self, database: str = "postgres", *names: str) -> str:
        """Return the address of a database on servers, on both when none is named."""
        hosts = ",".join(f"127.0.0.1:{self.ports[name]}" for name in names or self.ports)
        return f"postgresql://postgres@{hosts}/{database}"

    def start(self, *, synchronous: bool) -> None:
        """Make and start both; `synchronous` commits wait for the replica."""
        primary = self._new_folder(_PRIMARY)
        self.owner.run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", "postgres", "-D", str(primary))
        self._run(_PRIMARY)
        replica = self._new_folder(_REPLICA)
        source = f"host=127.0.0.1 port={self.ports[_PRIMARY]} user=postgres application_name={_REPLICA}"
        options = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast")
        self.owner.run("pg_basebackup", f"--dbname={source}", f"--pgdata={replica}", *options)
        self._run(_REPLICA)
        asyncio.run(self._await_replica(synchronous=synchronous))

    async def hold_replication(self) -> None:
        """Let the replica fall behind, as over a line that is broken."""
        await self._signal_sender(signal.SIGSTOP)

    async def resume_replication(self) -> None:
        """Let it catch up."""
        await self._signal_sender(signal.SIGCONT)

    async def _signal_sender(self, number: int) -> None:
        conn = await connect(self.address("postgres", _PRIMARY))
        try:
            os.kill(await conn.fetchval("SELECT pid FROM pg_stat_replication"), number)
        finally:
            await conn.close()

    def processes(self) -> dict[str, int]:
        """Return the first process of each server."""
        return {name: self._pid_of(name) for name in self.ports}

    def kill_primary(self) -> None:
        """Kill the primary as a crash would: nothing is flushed or announced, and nothing is answered afterwards."""
        server = psutil.Process(self._pid_of(_PRIMARY))
        # The processes of connections too: they answer what they were sent until they see that the first one is gone.
        processes = [server, *server.children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(processes, timeout=_KILL_SECONDS)

    def promote_replica(self) -> None:
        """Make the replica the primary; return when it takes writes."""
        self.owner.run("pg_ctl", "promote", "-w", "-D", str(self._folder / _REPLICA))

    def stop_replica(self) -> None:
        """Stop the replica as its operator would."""
        self.owner.run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._folder / _REPLICA))

    def stop(self) -> None:
        """Stop both, in any state."""
        for name in self.ports:
            with suppress(EmbeddedPostgresError):  # it does not run
                self.owner.run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self._folder / name))

    def _pid_of(self, name: str) -> int:
        return int((self._folder / name / "postmaster.pid").read_text().splitlines()[0])

    def _new_folder(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(mode=0o700)
        self.owner.take(path)
        return path

    def _run(self, name: str) -> None:
        path = self._folder / name
        config = path / "postgresql.conf"
        config.write_text(self._settings + f"port = {self.ports[name]}\n")
        self.owner.run("pg_ctl", "start", "-w", "-D", str(path), "-l", str(path / "server.log"))

    async def _await_replica(self, *, synchronous: bool) -> None:
        conn = await connect(self.address("postgres", _PRIMARY))
        try:
            while await conn.fetchval("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == 0:
                await asyncio.sleep(POLL_SECONDS)
            if synchronous:
                await conn.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{_REPLICA}'")
                await conn.execute("SELECT pg_reload_conf()")
            await conn.execute("CREATE DATABASE billfold TEMPLATE template0")
        finally:
            await conn.close()
