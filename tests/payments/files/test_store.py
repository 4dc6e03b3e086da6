"""Each file of a rail is stored once, and its result is recorded once."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from billfold.payments.files import store
from billfold.payments.files.types import DuplicateFile, SealedContent
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound

CONTENT = SealedContent(b"sealed", bytes(32))


async def test_an_outbound_file_is_created_once_and_transmitted(conn):
    now, file_id = wall_now(), ids.new()
    made = await store.save_outbound(conn, file_id, "WIRE", name="w1.xml", content=CONTENT, now=now)
    assert await store.save_outbound(conn, file_id, "WIRE", name="w1.xml", content=CONTENT, now=now) == made
    await store.complete_file(conn, file_id, "TRANSMITTED", now=now)
    assert (await store.find_file(conn, file_id)).done_at == now
    with pytest.raises(NotFound):
        await store.find_file(conn, ids.new())
    with pytest.raises(NotFound):
        await store.get_content(conn, ids.new())


async def test_files_with_the_same_timestamp_are_listed_last_written_first(conn):
    now = wall_now()
    for nth, (name, later) in enumerate(
        (("ACH-002.ach", 0), ("ACH-010.ach", 0), ("ACH-001.ach", 0), ("A.ach", 1), ("Z.ach", 1))
    ):
        at = now + timedelta(seconds=later)
        await store.save_outbound(
            conn, ids.new(), "ACH", name=name, content=SealedContent(bytes([nth]), bytes(32)), now=at
        )
    listed = [each.name for each in await store.list_files(conn, rail="ACH")]
    assert listed == ["Z.ach", "A.ach", "ACH-001.ach", "ACH-010.ach", "ACH-002.ach"]


async def test_a_content_that_two_processes_store_at_once_under_two_names_is_a_duplicate(conn, database_dsn):
    other = await asyncpg.connect(database_dsn)
    try:
        first = conn.transaction()
        await first.start()
        await store.save_inbound(conn, ids.new(), "WIRE", name="a.xml", content=CONTENT, now=wall_now())
        second = asyncio.create_task(
            store.save_inbound(other, ids.new(), "WIRE", name="b.xml", content=CONTENT, now=wall_now())
        )
        await asyncio.sleep(0.2)
        await first.commit()
        with pytest.raises(DuplicateFile, match=r"a\.xml"):
            await second
    finally:
        await other.close()
