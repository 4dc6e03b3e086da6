"""How the https server is started: Granian, one process per worker, TLS 1.2 or later.

`target` names a factory without parameters, such as "billfold.wiring.server:partner_app", that returns
an ASGI application (see `lazy_app.LazyApp`). Each worker calls it and runs its lifespan, so each
has its own pool and engine.
"""

from __future__ import annotations

from pathlib import Path

from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

BACKLOG = 2048
STOP_SECONDS = 15
HEADERS_SECONDS = 15_000
BUFFER_BYTES = 64 * 1024


def https_server(
    target: str, *, host: str, port: int, workers: int = 1, certificate: Path | None = None, key: Path | None = None
) -> MPServer:
    """Return the server; `serve()` of it blocks until a signal ends it.

    Without certificate and key it speaks plain http, for a proxy in front that ends TLS.
    """
    return MPServer(
        target,
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADERS_SECONDS, max_buffer_size=BUFFER_BYTES),
        websockets=False,
        backlog=BACKLOG,
        ssl_cert=certificate,
        ssl_key=key,
        ssl_protocol_min=SSLProtocols.tls12,
        log_access=False,
        log_level=LogLevels.warning,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS,
    )
