"""A server or worker of a bank in its own process; under load it is the https process of `billfold serve`."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from time import sleep
from typing import Self

import psutil
from typing_extensions import override

from benchmarks.dataset import Location
from benchmarks.measurements import peak_memory_mib
from benchmarks.worker_processes import WorkloadError
from billfold.platform.clock import monotonic
from billfold.platform.settings.validation import PREFIX, variable_name
from billfold.wiring.cli.serve import child_command_line
from billfold.wiring.cli_context import Wiring

_LOOK_SECONDS = 0.1
_STOP_SECONDS = 20.0
_LOG_TAIL = 3000


class Server:
    """One server of a bank; its certificate names localhost and every partner there is."""

    log_level = "WARNING"
    start_seconds = 60.0

    def __init__(self, location: Location, *, workers: int = 1, command: str = "run-https") -> None:
        self.port, self._http_port = free_ports(2)
        self.ca = location.state_dir / "tls" / "ca.pem"
        self._command = command
        self._log = location.state_dir / f"{command}-{self.port}.log"
        self._place = location
        self._workers = workers
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it and wait until it is ready. Raises WorkloadError with the end of its log."""
        environment = self._environment()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                child_command_line(self._command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        late = monotonic() + self.start_seconds
        while monotonic() < late and self._process.poll() is None:
            if self._is_ready():
                return self
            sleep(_LOOK_SECONDS)
        self.__exit__()
        raise WorkloadError(f"`billfold {self._command}` does not open: {self._log_tail()}")

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_TAIL:]

    @property
    def pid(self) -> int:
        """Return the process that its workers are children of."""
        assert self._process is not None
        return self._process.pid

    def peak_of_worker(self) -> float:
        """Return the most memory any of its workers has held, in MiB."""
        family = psutil.Process(self.pid).children(recursive=True)
        return max(peak_memory_mib(process.pid) for process in family)

    def __exit__(self, kind: object = None, error: BaseException | None = None, trace: object = None) -> None:
        """End it and its workers. An error is given the end of its log."""
        if error is not None:
            error.add_note(self._log_tail())
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _environment(self) -> dict[str, str]:
        wiring = Wiring(_clean(os.environ))
        return wiring.environment(
            self._place.settings(),
            self._place.dsn,
            port=self.port,
            http_port=self._http_port,
            workers=self._workers,
            log_level=self.log_level,
        )

    def _is_ready(self) -> bool:
        if not self.ca.exists():
            return False
        tls = ssl.create_default_context(cafile=str(self.ca))
        connection = HTTPSConnection("localhost", self.port, context=tls, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200  # noqa: PLR2004 - what healthy means
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


class WorkerProcess(Server):
    """A `billfold worker`; it is ready when it looks for work."""

    log_level = "INFO"

    def __init__(self, location: Location) -> None:
        super().__init__(location, command="worker")

    @override
    def _is_ready(self) -> bool:
        return "worker_started" in self._log.read_text(errors="replace")


class SandboxServer(Server):
    """A `billfold sandbox` with a database of its own, which has played its story when it is ready."""

    start_seconds = 300.0

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        super().__init__(Location("", folder), command="sandbox")

    @override
    def _environment(self) -> dict[str, str]:
        own = {"state_dir": self.folder, "port": self.port, "http_port": self._http_port}
        return _clean(os.environ) | {variable_name(name): str(value) for name, value in own.items()}

    @override
    def _is_ready(self) -> bool:
        return "The bank is open" in self._log.read_text(errors="replace")


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 that nothing listens at."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out settings of a bank the caller may have: the server is a default installation."""
    return {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
