"""A file that cannot be finished says why, and is tried again after pauses that grow."""

import json
from datetime import timedelta

from billfold.payments.files import exceptions
from billfold.payments.files import store as files_store
from billfold.payments.files.exceptions import StuckLine, retry_delay
from billfold.platform import ids
from billfold.platform.clock import wall_now


def test_pauses_double_up_to_an_hour():
    seconds = [retry_delay(tries).total_seconds() for tries in (1, 2, 3, 7, 8, 500)]
    assert seconds == [30, 60, 120, 1_920, 3_600, 3_600]


async def test_a_failing_file_is_retried_later_and_keeps_its_report(conn):
    now, file_id = wall_now(), ids.new()
    kept = await files_store.save_inbound(conn, file_id, "ACH", name="one.ach", content=b"101", now=now)
    assert exceptions.retry_state_of(kept) is None
    stuck = [StuckLine(line=3, trace="1", error="odd"), StuckLine(line=9, trace="2", error="even")]
    await exceptions.schedule_retry(conn, kept, wall=now, stuck=stuck, taken=7)
    (approval_response,) = await exceptions.list_failing(conn)
    trouble = exceptions.retry_state_of(approval_response)
    assert trouble is not None
    assert trouble.words() == "line 3: odd (and 1 more)"
    assert trouble.again_at == now + timedelta(seconds=30)
    soon, then = now + timedelta(seconds=29), now + timedelta(seconds=30)
    assert await exceptions.list_due(conn, "ACH", soon) == []
    assert await exceptions.list_due(conn, "ACH", then) == [approval_response]
    assert await exceptions.list_due(conn, "WIRE", then) == []
    await exceptions.schedule_retry(conn, approval_response, wall=then, error="no room")
    (approval_response,) = await exceptions.list_failing(conn)
    told = json.loads(approval_response.report or "")
    assert (told["tries"], told["taken"], len(told["stuck"])) == (2, 7, 2)
    await exceptions.retry_now(conn, approval_response, now)
    assert len(await exceptions.list_due(conn, "ACH", now)) == 1
    await files_store.complete_file(conn, file_id, "PROCESSED", now=now, report={})
    assert await exceptions.list_failing(conn) == []
    await exceptions.retry_now(conn, approval_response, now)
    assert exceptions.retry_state_of(await files_store.find_file(conn, file_id)) is None
