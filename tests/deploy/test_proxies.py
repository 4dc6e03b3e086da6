import asyncio
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
from granian.constants import Interfaces
from granian.server.embed import Server
from structlog.testing import capture_logs
from tests.support.sandbox_process import free_ports
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, new_partner

from billfold.cli.tls import ensure_certificates
from billfold.http.edge import observed
from billfold.platform.clock import monotonic, wall_now
from billfold.wiring.server import make_host_router

PROXIES = Path(__file__).parents[2] / "deploy/proxies"
UP_SECONDS = 10


def nginx_command(folder, tls, port, bank):
    example = (PROXIES / "nginx.conf").read_text()
    example = example.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8443", f"127.0.0.1:{bank}")
    example = example.replace("/etc/billfold/server.pem", str(tls.certificate)).replace(
        "/etc/billfold/server.key", str(tls.key)
    )
    own = "".join(
        f"{each}_temp_path {folder}/{each};\n" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{own}{example} }}\n"
    )
    return ["nginx", "-e", f"{folder}/error.log", "-c", str(config)]


def haproxy_command(folder, tls, port, bank):
    pem = folder / "both.pem"
    pem.write_text(tls.certificate.read_text() + tls.key.read_text())
    example = (PROXIES / "haproxy.cfg").read_text()
    example = example.replace("bind :443", f"bind 127.0.0.1:{port}").replace("/etc/billfold/haproxy.pem", str(pem))
    example = re.sub(r"127\.0\.0\.1:8443 port 18443", f"127.0.0.1:{bank} no-check", example)
    config = folder / "haproxy.cfg"
    config.write_text(example)
    return ["haproxy", "-db", "-f", str(config)]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def serve_app(router, settings):
    """Serve an application over plain http during the block."""
    app = observed(router, settings)
    server = Server(app, address="127.0.0.1", port=settings.port, interface=Interfaces.ASGI)
    serving = asyncio.create_task(server.serve())
    yield
    server.stop()
    await asyncio.wait_for(serving, UP_SECONDS)
    async with router.lifespan():
        pass


@asynccontextmanager
async def behind(command, port):
    """Run a proxy during the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as proxy:
        try:
            until = monotonic() + UP_SECONDS
            while not answers(port):
                assert proxy.poll() is None, proxy.communicate()[0].decode()
                assert monotonic() < until
                await asyncio.sleep(0.05)
            yield
        finally:
            proxy.terminate()


@pytest.mark.parametrize("command_of", [nginx_command, haproxy_command])
async def test_requests_behind_a_proxy_keep_the_host_path_and_address_of_the_caller(command_of, bank_dsn, tmp_path):
    program = command_of.__name__.partition("_")[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    port, inner = free_ports(2)
    bank = await open_bank(
        bank_dsn, port=inner, behind_proxy=True, trusted_proxies=(ip_network("127.0.0.1"),), access_log=True
    )
    router = make_host_router(bank)
    partner = await new_partner(bank)
    tls = ensure_certificates(tmp_path, wall_now(), domain="localhost", partners=["acme"])
    caller = PartnerClient(router, partner)
    await caller.http.aclose()
    host = f"acme.localhost:{port}"
    forged = {"host": host, "x-forwarded-for": "198.51.100.7", "x-forwarded-proto": "http"}
    caller.http = httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}", headers=forged, verify=ssl._create_unverified_context()
    )
    path = f"/api/v2/customers/{partner.own_customer_id}/pockets/"
    body = {"pocket_name": "Behind", "trading_strategy_id": "UST-4W"}
    with capture_logs() as logs:
        async with serve_app(router, bank.settings), behind(command_of(tmp_path, tls, port, inner), port):
            assert (await caller.send("POST", path, body)).status_code == 201
            escaped = await caller.send("GET", path.replace("pockets", "%70ockets"))
            assert escaped.json()["instance"] == path.replace("pockets", "%70ockets")
            # It is signed as it was sent; merged on its way, the signature would not fit.
            assert (await caller.send("GET", path.replace("/pockets", "//pockets"))).status_code == 200
    requests = [each for each in logs if each["event"] == "request"]
    assert {each["server.address"] for each in requests} == {host}
    assert {each["client.address"] for each in requests} == {"127.0.0.1"}
    await caller.close()
    await close_bank(bank)
