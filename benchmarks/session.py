"""The session of one benchmark: its own database server, and processes that end with it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from benchmarks.bank_workload import BankWorkload, bank_process
from benchmarks.baseline import open_bare
from benchmarks.dataset import Location
from benchmarks.load_generator import open_load_generator
from benchmarks.measurements import Log, peak_memory_of_server
from benchmarks.server import Server
from benchmarks.sizes import Sizes
from benchmarks.throwaway_server import Database
from benchmarks.worker_processes import Worker


class Session:
    """Everything that a benchmark starts."""

    def __init__(self, database: Database, sizes: Sizes, log: Log, stack: ExitStack) -> None:
        self.database = database
        self.sizes = sizes
        self.log = log
        self._stack = stack

    def baseline(self) -> Worker:
        """Start the bare transfers, over a database of their own."""
        dsn = self.database.empty_database("bare")
        return self._stack.enter_context(Worker(open_bare, dsn=dsn, accounts=self.sizes.customers))

    def bank(
        self, location: Location, kind: type[BankWorkload] = BankWorkload, *, first: bool = True, **settings: Any
    ) -> Worker:
        """Start a workload on the bank of a place; the `first` founds it."""
        return self._stack.enter_context(bank_process(location, kind, first=first, **settings))

    def server(self, location: Location, *, workers: int = 1) -> Server:
        """Start a server of a bank that has its partner."""
        return self._stack.enter_context(Server(location, workers=workers))

    def load_generator(self, server: Server) -> Worker:
        """Start a load generator for the servers of one place."""
        return self._stack.enter_context(Worker(open_load_generator, fast=True, trusted=server.ca))

    def peaks(self, **processes: float) -> dict[str, float]:
        """Return the peak memory of these processes, and of those of PostgreSQL."""
        named = {name.replace("_", " "): mib for name, mib in processes.items()}
        return named | peak_memory_of_server(self.database.pid)
