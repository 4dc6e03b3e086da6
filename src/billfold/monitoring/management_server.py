"""The port of `/livez`, `/readyz` and `/metrics`: plain http for the operator's own network, no credentials.

A process that counts for itself shows its own counters; one that supervises others shows the sums of theirs, which
they keep in a folder. The database is measured at most once in `READ_SECONDS`, however often it is requested.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psutil
import structlog

from billfold.cli.context import CliError
from billfold.monitoring.node_health import measure_nodes
from billfold.monitoring.samples import MetricSample, count_breaks, measure
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.connection import Connection, Connector, hosts_of
from billfold.platform.database.shortage import error_summary
from billfold.platform.settings.settings import Settings

log = structlog.get_logger(__name__)

READ_SECONDS = 5.0
NODES_SECONDS = 60.0
BREAKS_SECONDS = 300.0
REQUEST_SECONDS = 5.0
CHECK_SECONDS = 4.0
"""Maximum duration of a `/readyz` check, below the timeout of its callers: a process under load is not dead."""
_HEAD_BYTES_MAX = 16 * 1024
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
TEXT = "text/plain; charset=utf-8"
Check = Callable[[], Awaitable[str]]
"""Returns why a process is not ready, or ""."""


class ManagementServer:
    """Serves the metrics and health of a process. `draining` is set when it is about to stop."""

    def __init__(self, dsn: str, *, folder: Path | None = None, checks: Iterable[Check] = ()) -> None:
        self.draining = False
        self._folder = folder
        self._checks = tuple(checks)
        self._reader = DatabaseReader(dsn)

    async def respond(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body of a path."""
        if path == "/livez":
            return HTTPStatus.OK, TEXT, b"ok\n"
        if path == "/readyz":
            reason = await self._why_not_ready()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
            return status, TEXT, (reason or "ok").encode() + b"\n"
        if path == "/metrics":
            return HTTPStatus.OK, *await self._metrics()
        return HTTPStatus.NOT_FOUND, TEXT, b"Only /livez, /readyz and /metrics are here.\n"

    async def _why_not_ready(self) -> str:
        if self.draining:
            return "draining"
        reasons = await asyncio.gather(*(check() for check in (self._reader.check, *self._checks)))
        return next(filter(None, reasons), "")

    async def _metrics(self) -> tuple[str, bytes]:
        from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest  # noqa: PLC0415

        counted = REGISTRY
        if self._folder is not None:
            counted = CollectorRegistry()
            await asyncio.to_thread(_collect_from, self._folder, counted)
        measured = CollectorRegistry()
        measured.register(_Collector(await self._reader.read()))
        shown = await asyncio.to_thread(generate_latest, counted)
        return CONTENT_TYPE_LATEST, shown + generate_latest(measured)


class DatabaseReader:
    """Measures the database. It keeps no connection, and those it makes cannot write."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connector = Connector()  # of several hosts it tries the last one used first
        self._connect_seconds = CHECK_SECONDS / max(1, len(hosts_of(dsn)))  # so that each host is reached
        self._reading, self._checking = asyncio.Lock(), asyncio.Lock()  # a check does not wait for measurements
        self._measured: list[MetricSample] = []
        self._breaks: list[MetricSample] = []
        self._nodes: list[MetricSample] = []
        self._read_at = self._breaks_at = self._nodes_at = self._checked_at = float("-inf")
        self._reason = ""

    async def read(self) -> list[MetricSample]:
        """Return the latest measurements; nothing while the database is unavailable."""
        async with self._reading:
            if monotonic() - self._read_at >= READ_SECONDS:
                self._measured = await self._attempt(measure)
                self._read_at = monotonic()
            if monotonic() - self._breaks_at >= BREAKS_SECONDS:
                self._breaks = await self._attempt(count_breaks)
                self._breaks_at = monotonic()
            if monotonic() - self._nodes_at >= NODES_SECONDS:
                self._nodes = await self._attempt(measure_nodes)
                self._nodes_at = monotonic()
            return [*self._measured, *self._breaks, *self._nodes]

    async def check(self) -> str:
        """Return why the database does not answer, or ""; the result is cached for a second."""
        async with self._checking:
            if monotonic() - self._checked_at >= 1:
                try:
                    async with asyncio.timeout(CHECK_SECONDS), self._connection() as conn:
                        await conn.fetchval("SELECT 1")
                    self._reason = ""
                except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
                    self._reason = f"the database does not answer: {type(error).__name__}"
                self._checked_at = monotonic()
            return self._reason

    async def _attempt(
        self, read: Callable[[Connection, datetime], Awaitable[list[MetricSample]]]
    ) -> list[MetricSample]:
        try:
            async with asyncio.timeout(REQUEST_SECONDS), self._connection() as conn:
                return await read(conn, wall_now())
        except Exception as error:  # noqa: BLE001 - what cannot be measured is not shown
            log.warning("measuring_failed", error=error_summary(error))
            return []

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        session = {"default_transaction_read_only": "on", "application_name": "billfold-monitoring"}
        conn = await self._connector.connect(self._dsn, timeout=self._connect_seconds, server_settings=session)
        try:
            yield conn
        finally:
            conn.terminate()


class _Collector:
    """Passes our measurements to the library."""

    def __init__(self, measured: Iterable[MetricSample]) -> None:
        self._measured = measured

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - only where somebody reads it

        for gauge, values in self._measured:
            family = GaugeMetricFamily(gauge.name, gauge.about, labels=gauge.labels)
            for labels, value in values:
                family.add_metric(labels, value)
            yield family


def _collect_from(folder: Path, registry: Any) -> None:  # noqa: ANN401 - of the library
    """Add the sums over the processes that count in a folder; gauges of processes that are gone are removed."""
    from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead  # noqa: PLC0415

    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]


@asynccontextmanager
async def serve_management(
    settings: Settings, dsn: str, *, folder: Path | None = None, checks: Iterable[Check] = ()
) -> AsyncIterator[ManagementServer | None]:
    """Serve the management port while the context lasts, if the settings name one. Raises CliError."""
    if settings.management_port is None:
        yield None
        return
    management = ManagementServer(dsn, folder=folder, checks=checks)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS * 2):
                await _serve_request(management, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    host, port = settings.management_host, settings.management_port
    try:
        server = await asyncio.start_server(serve, host, port, limit=_HEAD_BYTES_MAX)
    except OSError as error:
        raise CliError(
            f"Port {port} of {host} cannot be opened: {error.strerror}.",
            "Give each process on this host its own BILLFOLD_MANAGEMENT_PORT.",
        ) from None
    async with server:
        yield management


async def _serve_request(
    management: ManagementServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one request; the connection closes after it."""
    head = await reader.readuntil(b"\r\n\r\n")
    method, target, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
    status: int
    status, content_type, body = HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"Only GET is accepted.\n"
    if method in {"GET", "HEAD"}:
        status, content_type, body = await management.respond(target.partition("?")[0])
    writer.write(
        f"HTTP/1.1 {int(status)} {HTTPStatus(status).phrase}\r\ncontent-type: {content_type}\r\n"
        f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n".encode()
    )
    writer.write(b"" if method == "HEAD" else body)
    await writer.drain()


@asynccontextmanager
async def manage_children(
    settings: Settings, dsn: str, *checks: Check
) -> AsyncIterator[tuple[ManagementServer | None, dict[str, str]]]:
    """Serve the management port of a process that supervises others; yield the environment variables for them."""
    if settings.management_port is None:
        yield None, {}
        return
    with tempfile.TemporaryDirectory(prefix="billfold-metrics-") as name:
        async with serve_management(settings, dsn, folder=Path(name), checks=checks) as management:
            yield management, {FOLDER: name}
