"""A running server of several processes, and the application its workers import."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.support.whole_bank import close_bank, open_bank

from billfold.cli.tls import ensure_certificates
from billfold.http.serve import LazyApp
from billfold.platform.clock import wall_now
from billfold.wiring.server import make_host_router

PATIENCE_SECONDS = 60
START = """
import sys
from pathlib import Path
from billfold.http.serve import (serve_https)
if __name__ == "__main__":
    certificate, key, port, workers = sys.argv[1:]
    serve_https("tests.support.served_auth:make_app", host="127.0.0.1", port=int(port),
                 workers=int(workers), certificate=Path(certificate), key=Path(key))
"""


@dataclass
class Served:
    """The address of the server, and the certificate authority that its clients trust."""

    issuer: str
    authority: Path

    def client(self):
        """Return a client that keeps no connection, so that each request finds any process."""
        return httpx.AsyncClient(
            base_url=self.issuer,
            verify=ssl.create_default_context(cafile=self.authority),
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=PATIENCE_SECONDS,
        )


@asynccontextmanager
async def opened():
    bank = await open_bank(os.environ["HOUSES_DSN"], auth_url=os.environ["HOUSES_ISSUER"])
    try:
        yield make_host_router(bank)
    finally:
        await close_bank(bank)


def make_app():
    """Return what a worker serves."""
    return LazyApp(opened)


@asynccontextmanager
async def serving(dsn, folder, *, workers):
    """Run a server on a founded database; the authorization server is at https://localhost."""
    files = ensure_certificates(folder, wall_now())
    script = folder / "start.py"
    script.write_text(START)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    served = Served(f"https://localhost:{port}", files.authority)
    root = Path.cwd()
    env = os.environ | {"HOUSES_DSN": dsn, "HOUSES_ISSUER": served.issuer, "PYTHONPATH": f"{root}:{root}/src"}
    arguments = [str(files.certificate), str(files.key), str(port), str(workers)]
    process = subprocess.Popen([sys.executable, str(script), *arguments], env=env)
    try:
        await _until_open(served)
        yield served
    finally:
        process.terminate()
        process.wait(30)


async def _until_open(served):
    async with served.client() as client:
        for _ in range(PATIENCE_SECONDS * 5):
            try:
                if (await client.get("/.well-known/jwks.json")).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(0.2)
    raise TimeoutError("the server does not answer")
