"""CSV files of a company with a long past: how long a million rows take, and what they cost the server in memory."""

from __future__ import annotations

import ssl
from http.client import HTTPSConnection
from typing import Final

from benchmarks.load_generator import Sessions
from benchmarks.measurements import Figure, Log, Timing, cpu_seconds, figure
from benchmarks.server import Server
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import monotonic

CSV_SECONDS_MAX: Final = 180
CSV_ADDED_MIB_MAX: Final = 32
_ROWS: Final = 1_000_000
_PATHS: Final = ("/api/v1/trades.csv", "/api/v2/transactions.csv")
_CHUNK: Final = 1 << 16
_OK: Final = 200


def bench_exports(server: Server, database_pid: int, allowed: Sessions, log: Log) -> list[Figure]:
    """Download each file once, whole, and return its time for a million rows and the memory it added to the peak."""
    figures = []
    for path in _PATHS:
        log(f"downloading {path}")
        memory, cpu = server.peak_of_worker(), cpu_seconds(server.pid, database_pid)
        timing = _download(server, path, allowed)
        seconds = (timing.ended - timing.started) / timing.done * _ROWS
        spent = (cpu_seconds(server.pid, database_pid) - cpu) / timing.done * _ROWS
        added = server.peak_of_worker() - memory
        name = f"{path} of {_ROWS:,} rows"
        figures += [
            figure(name, "seconds", [seconds], at_most=CSV_SECONDS_MAX),
            figure(f"{name}, server and database", "CPU seconds", [spent]),
            figure(f"{path}, added to the peak of the worker", "MiB", [added], at_most=CSV_ADDED_MIB_MAX),
        ]
    return figures


def _download(server: Server, path: str, allowed: Sessions) -> Timing:
    """Read a file to its end; `done` are its rows. Raises WorkloadError."""
    tls = ssl.create_default_context(cafile=str(server.ca))
    connection = HTTPSConnection("localhost", server.port, context=tls)
    name, _, value = allowed.lines[0].partition(": ")
    started, rows = monotonic(), -1
    try:
        connection.request("GET", path, headers={"Host": allowed.host, name: value})
        response = connection.getresponse()
        if response.status != _OK:
            raise WorkloadError(f"{path}: {response.status} {response.read(500)!r}")
        while chunk := response.read(_CHUNK):
            rows += chunk.count(b"\n")
    finally:
        connection.close()
    return Timing(rows, started, monotonic())
