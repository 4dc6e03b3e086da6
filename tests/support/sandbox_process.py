"""A whole sandbox in processes of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

import billfold
from billfold.sandbox.running_sandbox import SandboxFile

START_SECONDS = 180
SOURCE = Path(billfold.__file__).parents[1]
PROGRAM = Path(sys.executable).with_name("billfold")


def free_ports(count):
    """Return ports that nobody listens on right now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Sandbox:
    """A sandbox in a folder of its own, as a person starts it; `settings` are variables of its environment."""

    def __init__(self, folder, *options, **settings):
        self.state = folder / ".billfold"
        self.port, self.http_port = free_ports(2)
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
