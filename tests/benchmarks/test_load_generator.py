"""The load generator: requests as they go over the wire, answers in any number of pieces."""

import asyncio

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from benchmarks.dpop_clients import BoundTokens, as_pem
from benchmarks.load_generator import Call, Credentials, LoadRun, _Connection, proven_request, request_of
from benchmarks.worker_processes import WorkloadError
from billfold.access.oauth import dpop
from billfold.client.keys import ProofKey
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault, verify_signature

WHO = Credentials("bench.localhost", "token", "secret")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire(asyncio.Transport):
    """A transport that answers each request after the loop has turned."""

    def __init__(self, connection, pieces):
        super().__init__()
        self.connection, self.pieces, self.sent = connection, pieces, []

    @override
    def write(self, data):
        self.sent.append(data)
        loop = asyncio.get_running_loop()
        for piece in self.pieces:
            loop.call_soon(self.connection.data_received, piece)


async def run(requests, pieces, *, lines=2, per_second=None):
    load_run = LoadRun(requests, per_second)
    wires = []
    for _ in range(lines):
        connection = _Connection(load_run)
        wires.append(Wire(connection, pieces))
        connection.connection_made(wires[-1])
    outcome = await load_run.run([wire.connection for wire in wires])
    return outcome, [sent for wire in wires for sent in wire.sent]


def test_request_is_signed_when_there_are_credentials():
    head, _, body = request_of(Call("POST", "/a/", "b=1", body='{"c":2}'), WHO).partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = dict(connection.split(": ", 1) for connection in rest)
    assert first == "POST /a/?b=1 HTTP/1.1"
    assert headers["Authorization"] == "Bearer token"
    assert headers["Content-Length"] == str(len(body))
    assert verify_signature(
        ["secret"], headers["x-service-idempotency"], "/a/", body=body, signature=headers["x-service-signature"]
    )


def test_two_requests_have_two_keys():
    call = Call("POST", "/a/")
    assert request_of(call, WHO) != request_of(call, WHO)


def test_request_carries_a_token_and_a_proof_of_its_own_when_it_is_bound():
    key = ec.generate_private_key(ec.SECP256R1())
    made = BoundTokens("https://api.localhost:1", ["one", "two"], as_pem(key)).headers()
    jtis = set()
    for token in ("one", "two", "one"):
        first, *rest = proven_request(Call("GET", "/a/", "b=1"), made).decode().split("\r\n")
        headers = dict(connection.split(": ", 1) for connection in rest if connection)
        assert first == "GET /a/?b=1 HTTP/1.1"
        assert headers["Authorization"] == f"DPoP {token}"
        nonces = dpop.Nonces(Vault(bytes(32)))
        proof = dpop.verify_proof(
            headers["DPoP"],
            method="GET",
            url=f"https://{headers['Host']}/a/",
            now=wall_now(),
            nonces=nonces,
            token=token,
        )
        assert proof.jkt == ProofKey(key).thumbprint
        jtis.add(proof.jti)
    assert len(jtis) == 3


def test_request_is_bare_without_credentials():
    assert request_of(Call("GET", "/health"), None) == (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("per_second", [None, 10_000.0])
async def test_every_request_is_sent_once_in_a_closed_and_in_an_open_run(per_second):
    requests = [b"%d" % n for n in range(20)]
    outcome, sent = await run(requests, [OK], per_second=per_second)
    assert sorted(sent) == sorted(requests)
    assert outcome.timing.done == 20
    assert 0 <= outcome.p50_ms <= outcome.p99_ms


async def test_answer_is_put_together_when_it_comes_in_pieces():
    outcome, _ = await run([b"1", b"2", b"3"], [OK[:5], OK[5:39], OK[39:]])
    assert outcome.timing.done == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "429"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "without length"),
    ],
)
async def test_run_fails_at_the_first_answer_that_is_not_good(answer, why):
    with pytest.raises(WorkloadError, match=why):
        await run([b"1"], [answer], lines=1)


async def test_run_fails_when_the_server_hangs_up():
    load_run = LoadRun([b"1"], None)
    connection = _Connection(load_run)
    connection.connection_made(Wire(connection, []))
    asyncio.get_running_loop().call_soon(connection.connection_lost, None)
    with pytest.raises(WorkloadError, match="hung up"):
        await load_run.run([connection])
