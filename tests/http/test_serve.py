"""The real server: TLS, a worker process, its bank opened and closed in it."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, new_partner

from billfold.cli.tls import ensure_certificates
from billfold.platform.clock import wall_now

START = """
import sys
from pathlib import Path
from billfold.http.serve import (serve_https)
if __name__ == "__main__":
    certificate, key, port = sys.argv[1:]
    serve_https("tests.support.served_app:make_app", host="127.0.0.1", port=int(port),
                 workers=1, certificate=Path(certificate), key=Path(key))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
async def served(bank_dsn, tmp_path):
    """A partner, the address of a running server, and an SSL context that trusts it."""
    bank = await open_bank(bank_dsn)
    partner = await new_partner(bank)
    await close_bank(bank)
    files = ensure_certificates(tmp_path, wall_now(), partners=["acme"])
    script = tmp_path / "start.py"
    script.write_text(START)
    port = free_port()
    env = os.environ | {"DOORS_DSN": bank_dsn, "PYTHONPATH": f"{Path.cwd()}:{Path.cwd()}/src"}
    process = subprocess.Popen(
        [sys.executable, str(script), str(files.certificate), str(files.key), str(port)], env=env
    )
    context = ssl.create_default_context(cafile=files.authority)
    yield partner, port, context, process
    process.terminate()
    process.wait(15)


async def until_open(sample_client):
    for _ in range(600):
        try:
            return await sample_client.get("/health")
        except httpx.TransportError:
            await asyncio.sleep(0.1)
    pytest.fail("the server does not answer")


async def test_a_worker_opens_its_bank_and_answers_over_tls(served):
    partner, port, context, process = served
    sample_client = PartnerClient(None, partner)
    sample_client.http = httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}", verify=context, headers={"host": f"acme.localhost:{port}"}
    )
    assert (await until_open(sample_client.http)).text == "OK"
    answer = await sample_client.get("/api/v2/worker/")
    assert answer.status_code == 200
    assert answer.json()["pid"] != process.pid
    answer = await sample_client.post("/api/v2/worker/", b'{"a":"' + b"x" * 2 * 1024 * 1024 + b'"}')
    assert answer.status_code == 405
    answer = await sample_client.send("GET", "/api/v2/worker/", b"x" * 2 * 1024 * 1024)
    assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")
    answer = await sample_client.get("/api/v2/worker")
    assert answer.status_code == 200
    started = time.monotonic()
    process.terminate()
    assert process.wait(15) == 0
    assert time.monotonic() - started < 10
    await sample_client.close()
