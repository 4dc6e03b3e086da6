import asyncio
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, new_partner

from billfold.cli.context import CliError
from billfold.http.edge import observed
from billfold.monitoring import management_server
from billfold.monitoring.management_server import ManagementServer, manage_children, serve_management
from billfold.monitoring.node_health import NODE_GAUGES
from billfold.monitoring.samples import BREAKS, GAUGES, telemetry
from billfold.platform.settings.settings import Settings
from billfold.platform.telemetry.metrics import INSTRUMENTS
from billfold.wiring.server import make_host_router

ROOT = Path(__file__).parents[2]
_COUNTS = """
from billfold.platform.telemetry.metrics import POOL_CONNECTIONS_MAX, REFUSALS, start_metrics
REFUSALS.add("not-found")
start_metrics()
REFUSALS.add("not-found", by=2)
POOL_CONNECTIONS_MAX.set(12)
"""


def samples_of(text):
    return {
        (each.name, *each.labels.values()): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


async def test_the_management_server_shows_the_health_and_metrics_of_a_bank(bank_dsn, unused_tcp_port):
    bank = await open_bank(bank_dsn, management_port=unused_tcp_port)
    app = observed(make_host_router(bank), bank.settings)
    caller = PartnerClient(app, await new_partner(bank))
    async with (
        telemetry(bank, "api"),
        serve_management(bank.settings, bank_dsn) as management,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{unused_tcp_port}") as operator,
    ):
        for nth in range(20):  # unknown paths and methods share one series
            assert (await caller.http.get(f"/made-up/{nth}")).status_code == 404
        login = {"username": "acme-app", "password": "wrong, as before"}
        assert (await caller.http.post("/api/v1/login/", json=login)).status_code == 401
        await new_partner(bank, "bolt")
        assert [(await operator.get(path)).status_code for path in ("/livez", "/readyz", "/other")] == [200, 200, 404]
        assert (await operator.post("/metrics")).status_code == 405
        found = samples_of((await operator.get("/metrics")).text)
        assert management is not None
        management.draining = True
        assert (await operator.get("/readyz")).status_code == 503
    assert found["billfold_http_requests_total", "unmatched", "404"] == 20
    assert len([name for name, *_ in found if name == "billfold_http_requests_total"]) == 2
    assert found["billfold_refusals_total", "invalid-credentials"] == 1
    assert found["billfold_sign_in_failures_total", "partner password"] == 1
    assert found["billfold_commands_total", "EnrolCustomer", "accepted"] == 1
    assert found["billfold_batch_commands_count",] == 1
    assert found["billfold_pool_connections_max",] == 8
    assert found["billfold_due_work_lag_seconds",] == 0
    assert found["billfold_reconciliation_breaks", "WIRE"] == 0
    await caller.close()
    await close_bank(bank)


async def test_readiness_fails_without_a_database_while_metrics_remain_available(unused_tcp_port):
    settings = Settings(management_port=unused_tcp_port)
    async with serve_management(settings, "postgresql://127.0.0.1:1/none"):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{unused_tcp_port}") as operator:
            answer = await operator.get("/readyz")
            assert (answer.status_code, "database does not answer" in answer.text) == (503, True)
            assert (await operator.get("/livez")).status_code == 200
            metrics = await operator.get("/metrics")
            assert (metrics.status_code, "billfold_webhook_queue" in metrics.text) == (200, False)
        with pytest.raises(CliError, match="cannot be opened"):
            async with serve_management(replace(settings), ""):
                pass


async def test_readiness_does_not_wait_for_a_running_measurement(bank_dsn, monkeypatch):
    going, may_end = asyncio.Event(), asyncio.Event()

    async def measure(conn, now):
        going.set()
        await may_end.wait()
        return []

    monkeypatch.setattr(management_server, "measure", measure)
    management = ManagementServer(bank_dsn)
    measuring = asyncio.create_task(management.respond("/metrics"))
    await going.wait()
    assert (await management.respond("/readyz"))[0] == 200
    may_end.set()
    assert (await measuring)[0] == 200


async def test_unreachable_database_hosts_are_skipped_and_not_retried(bank_dsn, monkeypatch):
    asked = []

    async def stay_silent(reader, writer):  # as a machine that vanished: nothing comes back
        asked.append("silent")
        await reader.read()
        writer.close()

    async def close_connection(reader, writer):  # as a proxy without a server
        asked.append("hung up")
        await reader.readexactly(8)
        writer.write(b"N")  # no TLS
        await reader.read(8)
        writer.close()

    gone = [await asyncio.start_server(each, "127.0.0.1", 0) for each in (stay_silent, close_connection)]
    ports = [each.sockets[0].getsockname()[1] for each in gone]
    address = urlsplit(bank_dsn)
    there = {name: values[-1] for name, values in parse_qs(address.query).items()}
    hosts = ",".join(["127.0.0.1", "127.0.0.1", there.get("host") or address.hostname])
    port = there.get("port") or str(address.port or 5432)
    query = urlencode({**there, "host": hosts, "port": f"{ports[0]},{ports[1]},{port}"})
    user = address.netloc.rpartition("@")[0]
    monkeypatch.setattr(management_server, "CHECK_SECONDS", 3.0)
    management = ManagementServer(f"{address.scheme}://{user}@{address.path}?{query}")
    assert await management.respond("/readyz") == (200, "text/plain; charset=utf-8", b"ok\n")
    assert b"billfold_webhook_queue" in (await management.respond("/metrics"))[2]
    assert asked.count("silent") == 1
    assert set(asked) == {"silent", "hung up"}
    for each in gone:
        each.close()


async def test_metrics_of_processes_under_one_supervisor_are_aggregated(unused_tcp_port):
    async with manage_children(Settings(management_port=unused_tcp_port), "postgresql://127.0.0.1:1/none") as (_, own):
        for _ in range(2):
            subprocess.run([sys.executable, "-c", _COUNTS], env=os.environ | own, check=True)
        async with httpx.AsyncClient() as operator:
            found = samples_of((await operator.get(f"http://127.0.0.1:{unused_tcp_port}/metrics")).text)
    assert found["billfold_refusals_total", "not-found"] == 4
    assert found.get(("billfold_pool_connections_max",), 0) == 0  # both have ended
    assert not Path(own[management_server.FOLDER]).exists()


def declared_metrics():
    series = {"Histogram": ("_bucket", "_sum", "_count")}
    counted_here = {each.name + end for each in INSTRUMENTS for end in series.get(each.kind, ("",))}
    return counted_here | {each.name for each in (*GAUGES, BREAKS, *NODE_GAUGES)}


@pytest.mark.parametrize("path", ["deploy/prometheus/alerts.yml", "deploy/grafana/billfold.json"])
def test_metrics_used_by_dashboard_and_alerts_exist(path):
    names = set(re.findall(r"billfold_\w+", (ROOT / path).read_text()))
    assert names
    assert names <= declared_metrics()


def test_the_metrics_page_lists_every_metric():
    page = (ROOT / "docs/operate/metrics.md").read_text()
    listed = set(re.findall(r"^\| `(billfold_\w+)`", page, re.MULTILINE))
    assert listed == {each.name for each in INSTRUMENTS} | {each.name for each in (*GAUGES, BREAKS, *NODE_GAUGES)}
