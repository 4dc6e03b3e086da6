"""Other ledgers in the benchmark: each is driven through its own API, and its refusals are counted."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from tests.benchmarks.test_cli import TINY
from typer.testing import CliRunner
from typing_extensions import override

from benchmarks import cli
from benchmarks.peer_ledgers import FUNDED_CENTS, Address, Blnk, Formance, Ledger
from benchmarks.worker_processes import WorkloadError


class PlainLedger:
    """Balances in memory behind the APIs of both compared ledgers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.balances: Counter[str] = Counter()
        self.keys, self.ledgers, self.transfers = set(), set(), 0
        self.refuse_every = None

    def post(self, path, headers, body):
        with self.lock:
            parts = path.strip("/").split("/")
            if parts[0] == "v2":
                return self.formance(parts[1:], headers, body)
            return getattr(self, "_".join(["blnk", *parts]))(body)

    def formance(self, parts, headers, body):
        if len(parts) == 1:
            self.ledgers.add(parts[0])
            return 204, None
        assert parts[0] in self.ledgers
        assert body["metadata"] == {}
        assert {each["asset"] for each in body["postings"]} == {"USD/2"}
        moves = [(each["source"], each["destination"], each["amount"]) for each in body["postings"]]
        if moves[0][0] != "world":
            return self.transfer(headers["Idempotency-Key"], *moves[0], 200)
        for _, account, cents in moves:
            self.balances[account] += cents
        return 200, {"data": {"id": 1}}

    def blnk_ledgers(self, body):
        return 201, {"ledger_id": f"ldg_{body['name']}"}

    def blnk_balances(self, body):
        assert body["ledger_id"].startswith("ldg_bench-")
        self.balances[f"bln_{len(self.balances)}"] = 0
        return 201, {"balance_id": f"bln_{len(self.balances) - 1}"}

    def blnk_transactions_bulk(self, body):
        assert body["skip_queue"]
        for each in body["transactions"]:
            assert (each["source"], each["allow_overdraft"]) == ("@bench-funding", True)
            self.balances[each["destination"]] += round(each["amount"] * each["precision"])
        return 201, {"status": "applied"}

    def blnk_transactions(self, body):
        assert body["skip_queue"]
        cents = round(body["amount"] * body["precision"])
        return self.transfer(body["reference"], body["source"], body["destination"], cents, 201)

    def transfer(self, key, payer, payee, cents, status):
        assert key not in self.keys, "each transfer has a key of its own"
        self.keys.add(key)
        if self.balances[payer] < cents or (self.refuse_every and len(self.keys) % self.refuse_every == 0):
            return 400, {"error": "insufficient funds"}
        self.balances[payer] -= cents
        self.balances[payee] += cents
        self.transfers += 1
        return status, {"data": {"id": self.transfers}}


@contextmanager
def serve_ledger(ledger, *, chunked):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = ledger.post(urlsplit(self.path).path, self.headers, body)
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if chunked and content:
                self.send_header("Transfer-Encoding", "chunked")
                content = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
            else:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        @override
        def log_message(self, *_):
            """Do not log to the terminal."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 512

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_peer_ledgers_and_billfold_are_measured_from_1_to_256_connections(state_dir):
    formance, blnk = PlainLedger(), PlainLedger()
    blnk.refuse_every = 50
    with serve_ledger(formance, chunked=True) as first, serve_ledger(blnk, chunked=False) as second:
        ledgers: list[Ledger] = [Formance(Address(url=first)), Blnk(Address(url=second, key="a key"))]
        found = cli.run(["peers"], ledgers=ledgers, scale=TINY, runs=1, state_dir=state_dir)
    figures = {each["name"]: each for each in found["benchmarks"]["peers"]["figures"]}
    for name in ("billfold", "formance", "blnk"):
        for at in ("1 connection", "16 connections", "64 connections", "256 connections"):
            assert figures[f"{name}, {at}: transfers"]["median"] > 0
            assert figures[f"{name}, {at}: p99"]["median"] >= figures[f"{name}, {at}: p50"]["median"] > 0
    assert figures["transfers at best, next to formance"]["baseline"] == "formance: transfers at best"
    assert figures["p99 at its half load, next to blnk"]["at_most"] == 1.0
    refused = figures["blnk: refused"]
    assert (refused["median"], refused["reached"]) == (len(blnk.keys) - blnk.transfers, False)
    for ledger in (formance, blnk):
        assert sum(ledger.balances.values()) == FUNDED_CENTS * 20
        assert ledger.transfers > 4 * 20


@pytest.mark.parametrize("ledger", [Formance, Blnk])
def test_an_unreachable_peer_address_is_reported(ledger):
    with pytest.raises(WorkloadError, match=r"http://127.0.0.1:9 does not answer POST"):
        ledger(Address(url="http://127.0.0.1:9")).open_accounts(2)


def test_a_peer_address_without_http_is_refused():
    assert "--formance" in CliRunner().invoke(cli.app, ["peers"]).output
    answer = CliRunner().invoke(cli.app, ["peers", "--blnk", "https://127.0.0.1:5001"])
    assert answer.exit_code == 1
    assert "begins with http://" in answer.output
