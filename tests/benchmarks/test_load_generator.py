"""The load generator: answers in any number of pieces, and the first that is not good ends the run."""

import asyncio

import pytest
from typing_extensions import override

from benchmarks.load_generator import LoadRun, _Connection
from benchmarks.worker_processes import WorkloadError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire(asyncio.Transport):
    """A transport that responds in the next iteration of the event loop."""

    def __init__(self, connection, pieces):
        super().__init__()
        self.connection, self.pieces = connection, pieces

    @override
    def write(self, data):
        loop = asyncio.get_running_loop()
        for piece in self.pieces:
            loop.call_soon(self.connection.data_received, piece)


async def run_load(requests, pieces):
    load_run = LoadRun(requests, None)
    connection = _Connection(load_run)
    connection.connection_made(Wire(connection, pieces))
    return await load_run.run([connection])


async def test_a_response_in_chunks_is_reassembled():
    outcome = await run_load([b"1", b"2", b"3"], [OK[:5], OK[5:39], OK[39:]])
    assert outcome.timing.done == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "429"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "without length"),
    ],
)
async def test_a_load_run_fails_at_the_first_bad_response(answer, why):
    with pytest.raises(WorkloadError, match=why):
        await run_load([b"1"], [answer])


async def test_a_load_run_fails_when_the_server_closes_the_connection():
    load_run = LoadRun([b"1"], None)
    connection = _Connection(load_run)
    connection.connection_made(Wire(connection, []))
    asyncio.get_running_loop().call_soon(connection.connection_lost, None)
    with pytest.raises(WorkloadError, match="hung up"):
        await load_run.run([connection])
