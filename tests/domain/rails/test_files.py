"""Files of the rails are kept once, and what became of them is said once."""

from datetime import timedelta

import pytest

from billfold.domain import rails
from billfold.kit import ids
from billfold.kit.clock import wall_now
from billfold.kit.errors import NotFound


async def test_a_file_that_arrives_twice_is_told_apart_by_its_content(conn):
    now, first = wall_now(), ids.new()
    kept = await rails.keep_arrived(conn, first, "ACH", "one.ach", b"101", now=now)
    assert (kept.state, kept.size_bytes, kept.done_at) == ("ARRIVED", 3, None)
    with pytest.raises(rails.AlreadyArrived, match="arrived as one") as told:
        async with conn.transaction():
            await rails.keep_arrived(conn, ids.new(), "ACH", "two.ach", b"101", now=now)
    assert told.value.at == now
    await rails.keep_arrived(conn, ids.new(), "WIRE", "two.xml", b"101", now=now)


async def test_what_was_refused_may_come_again(conn):
    now, first, again = wall_now(), ids.new(), ids.new()
    await rails.keep_arrived(conn, first, "ACH", "one.ach", b"101", now=now)
    assert [each.file_id for each in await rails.list_unfinished(conn, "ACH", "IN")] == [first]
    await rails.finish(conn, first, "REFUSED", now=now, report={"line": 1})
    await rails.finish(conn, first, "TAKEN", now=now)
    refused = await rails.find_file(conn, first)
    assert (refused.state, refused.report) == ("REFUSED", '{"line":1}')
    assert await rails.list_unfinished(conn, "ACH", "IN") == []
    await rails.keep_arrived(conn, again, "ACH", "one.ach", b"101", now=now)
    assert await rails.read_content(conn, again) == b"101"
    listed = await rails.list_files(conn, rail="ACH", state="ARRIVED")
    assert [each.file_id for each in listed] == [again]


async def test_our_own_file_is_made_once_and_handed_over(conn):
    now, file_id = wall_now(), ids.new()
    made = await rails.keep_made(conn, file_id, "WIRE", "w1.xml", b"<a/>", now=now)
    assert await rails.keep_made(conn, file_id, "WIRE", "w1.xml", b"<a/>", now=now) == made
    await rails.finish(conn, file_id, "HANDED", now=now)
    assert (await rails.find_file(conn, file_id)).done_at == now
    with pytest.raises(NotFound):
        await rails.find_file(conn, ids.new())
    with pytest.raises(NotFound):
        await rails.read_content(conn, ids.new())


async def test_files_of_one_instant_are_listed_by_name_backwards_after_all_later_ones(conn):
    now = wall_now()
    for nth, (name, later) in enumerate(
        (("ACH-002.ach", 0), ("ACH-010.ach", 0), ("ACH-001.ach", 0), ("A.ach", 1), ("Z.ach", 1))
    ):
        at = now + timedelta(seconds=later)
        await rails.keep_made(conn, ids.new(), "ACH", name, bytes([nth]), now=at)
    listed = [each.name for each in await rails.list_files(conn, rail="ACH")]
    assert listed == ["Z.ach", "A.ach", "ACH-010.ach", "ACH-002.ach", "ACH-001.ach"]
