"""The boundary of the process: time, randomness and ids come from the seed, and threads run in the loop."""

from __future__ import annotations

import os
import random
import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typing_extensions import override

from billfold.documents import pdf
from billfold.events.webhooks import ssrf
from billfold.platform import clock
from simulation.loop import SimulationLoop

EPOCH = datetime(2025, 6, 2, 13, tzinfo=UTC)
"""The wall time at which each simulation begins."""
ADDRESS = "93.184.215.14"
"""The address of every host: a public one."""


def control(loop: SimulationLoop, draw: Random) -> None:
    """Let the loop be the only clock of this process and `draw` its only source of randomness."""

    class VirtualTime(datetime):
        """Wall time, read from the loop."""

        @classmethod
        @override
        def now(cls, tz: tzinfo | None = None) -> Any:
            return (EPOCH + timedelta(seconds=loop.now)).astimezone(tz)

    outside: Any = SimpleNamespace(clock=clock, secrets=secrets, os=os, ssrf=ssrf, Ed25519PrivateKey=Ed25519PrivateKey)
    outside.clock.datetime = VirtualTime
    outside.clock.time = SimpleNamespace(monotonic=loop.time)
    outside.secrets._sysrand = draw
    outside.secrets.choice = draw.choice
    outside.os.urandom = draw.randbytes
    outside.Ed25519PrivateKey.generate = lambda: Ed25519PrivateKey.from_private_bytes(draw.randbytes(32))
    outside.ssrf.resolve_host = _resolve_host
    random.seed(draw.random())
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def print_one_page() -> None:
    """Let every document be the same page, made now: the threads that typeset are not in the fork of a process."""
    page, outside = pdf.typeset(b"#set document(title: [Page])", {}, made_on=EPOCH.date()), cast("Any", pdf)
    outside._compile = lambda *_, **__: page


def run_again_with_fixed_hashes() -> None:
    """Start this program once more, unless the order of its sets of texts is already the same in every run."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606


async def _resolve_host(host: str, port: int) -> Sequence[str]:
    """Know every host: a name server would answer when it likes."""
    return [ADDRESS]
