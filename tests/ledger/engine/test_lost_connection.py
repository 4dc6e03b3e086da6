"""The connection to the database breaks at the worst moments: every command still happens once."""

import asyncio
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.whole_bank import close_bank, open_bank

BEGIN, COMMIT = b"BEGIN;", b"COMMIT;"
COMMAND = b"ReceiveMoney"
"""Among the rows of a statement that is a transaction by itself."""
_AT_ONCE = 65536


class Line:
    """A connection to Postgres that can be set to break at the next commit."""

    def __init__(self, dsn):
        parts = urlsplit(dsn)
        query = parse_qs(parts.query)
        self._connect = (
            partial(asyncio.open_connection, parts.hostname, parts.port)
            if parts.port
            else partial(asyncio.open_unix_connection, f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
        )
        self._database = parts.path
        self.cut_before = self.cut_after = 0
        self.cuts = 0
        self._deaf = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        self._server.close()

    @property
    def dsn(self):
        port = self._server.sockets[0].getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}{self._database}?sslmode=disable"

    async def _connected(self, reader, writer):
        there, to_there = await self._connect()
        ends = (writer, to_there)
        tasks = [
            asyncio.create_task(self._carry(reader, to_there, ends, answers=there)),
            asyncio.create_task(self._carry_back(there, writer)),
        ]
        _, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        for end in ends:
            end.close()

    async def _carry(self, reader, writer, ends, answers):
        last = COMMAND
        with suppress(ConnectionError):
            while sent := await reader.read(_AT_ONCE):
                if BEGIN in sent:
                    last = COMMIT
                commits = last in sent
                if commits:
                    last = COMMAND
                if commits and self.cut_before:
                    self.cut_before -= 1
                    self.cuts += 1
                    return
                if commits and self.cut_after:
                    self.cut_after -= 1
                    self.cuts += 1
                    self._deaf.add(id(ends[0]))
                    writer.write(sent)
                    await writer.drain()
                    await asyncio.sleep(0.1)  # it is committed, and no caller gets an answer
                    return
                writer.write(sent)
                await writer.drain()

    async def _carry_back(self, reader, writer):
        with suppress(ConnectionError):
            while sent := await reader.read(_AT_ONCE):
                if id(writer) not in self._deaf:
                    writer.write(sent)
                    await writer.drain()


@pytest.fixture
async def line(database_dsn):
    async with Line(database_dsn) as line:
        yield line


@pytest.fixture
async def far_bank(line):
    """A bank connected through a breakable connection."""
    bank = await open_bank(line.dsn)
    yield bank
    await close_bank(bank)


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
async def test_a_command_is_executed_once_when_the_connection_breaks_at_commit(far_bank, new_holder, line, when):
    holder = await new_holder(at=far_bank)
    setattr(line, when, 1)
    command = holder.receipt(1_000_00)
    answer = await far_bank.engine.submit(command)
    assert line.cuts == 1
    assert answer.outcome["status"] == "COMPLETED"
    assert answer.replayed == (when == "cut_after")
    assert await far_bank.pool.fetchval("SELECT count(*) FROM transaction") == 1
