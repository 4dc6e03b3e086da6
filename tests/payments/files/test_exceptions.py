"""A file that cannot be finished says why, and is tried again after pauses that grow."""

import json
from datetime import timedelta

from billfold.payments.files import exceptions
from billfold.payments.files import store as files_store
from billfold.payments.files.exceptions import Stuck, pause_after
from billfold.platform import ids
from billfold.platform.clock import wall_now


def test_pauses_double_up_to_an_hour():
    seconds = [pause_after(tries).total_seconds() for tries in (1, 2, 3, 7, 8, 500)]
    assert seconds == [30, 60, 120, 1_920, 3_600, 3_600]


async def test_a_file_in_trouble_waits_for_its_time_and_keeps_what_was_told(conn):
    now, file_id = wall_now(), ids.new()
    kept = await files_store.keep_arrived(conn, file_id, "ACH", "one.ach", b"101", now=now)
    assert exceptions.trouble_of(kept) is None
    stuck = [Stuck(line=3, trace="1", error="odd"), Stuck(line=9, trace="2", error="even")]
    await exceptions.note_trouble(conn, kept, wall=now, stuck=stuck, taken=7)
    (waits,) = await exceptions.list_in_trouble(conn)
    trouble = exceptions.trouble_of(waits)
    assert trouble is not None
    assert trouble.words() == "line 3: odd (and 1 more)"
    assert trouble.again_at == now + timedelta(seconds=30)
    soon, then = now + timedelta(seconds=29), now + timedelta(seconds=30)
    assert await exceptions.list_to_take(conn, "ACH", soon) == []
    assert await exceptions.list_to_take(conn, "ACH", then) == [waits]
    assert await exceptions.list_to_take(conn, "WIRE", then) == []
    await exceptions.note_trouble(conn, waits, wall=then, error="no room")
    (waits,) = await exceptions.list_in_trouble(conn)
    told = json.loads(waits.report or "")
    assert (told["tries"], told["taken"], len(told["stuck"])) == (2, 7, 2)
    await exceptions.try_again(conn, waits, now)
    assert len(await exceptions.list_to_take(conn, "ACH", now)) == 1
    await files_store.finish(conn, file_id, "TAKEN", now=now, report={})
    assert await exceptions.list_in_trouble(conn) == []
    await exceptions.try_again(conn, waits, now)
    assert exceptions.trouble_of(await files_store.find_file(conn, file_id)) is None
