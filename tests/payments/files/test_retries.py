"""An unfinished file is retried at growing intervals and blocks no other file."""

import json
import re
from datetime import timedelta

import asyncpg
import pytest
from tests.payments.ach.test_inbound_files import Room, account_of, entry, file_of

from billfold.payments.ach import booking
from billfold.payments.ach.commands import ReceiveAch
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files import retries, store
from billfold.payments.files.types import RetryState, StuckLine
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import retry_delay
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import InvariantError, NotFound

ODD = 6_66
CONSTRAINED = "(CheckViolation|InternalServer)Error: .* check constraint"  # a cluster loses the kind of an error
_BREAK = f"ALTER TABLE ach_entry ADD CONSTRAINT odd CHECK (amount <> {ODD}) NOT VALID"
_MEND = "ALTER TABLE ach_entry DROP CONSTRAINT odd"


@pytest.fixture
async def room(bank):
    return Room(bank)


@pytest.fixture
async def owner(bank_dsn):
    """A connection that may change tables that the application may not change."""
    conn = await asyncpg.connect(bank_dsn)
    yield conn
    await conn.close()


async def failing_file(bank):
    (file,) = await retries.list_failing(bank.pool)
    return file, retries.retry_state_of(file)


async def try_now(room):
    file, _ = await failing_file(room.bank)
    await retries.retry_now(room.bank.pool, file, wall_now())
    return await room.gate.process_all(room.bank)


async def test_a_stuck_file_line_is_retried_without_blocking_others(bank, new_holder, room, owner):
    account = await account_of(bank, await new_holder())
    await owner.execute(_BREAK)
    odd = entry(3, account, amount=ODD)
    content = write_file(file_of(entry(1, account), entry(2), odd, entry(4, account)))
    await room.other.transmit("daily.ach", content)
    await room.put("next.ach", file_of(entry(5, account)))

    assert room.report("next.ach")["taken"] == 1
    assert await room.booked() == (3, 1)
    file, trouble = await failing_file(bank)
    assert (file.name, file.state, trouble.tries) == ("daily.ach", "ARRIVED", 1)
    assert [(each.line, each.trace) for each in trouble.stuck] == [(5, odd.trace_number)]
    assert re.match(f"line 5: {CONSTRAINED}", trouble.words())
    assert room.report("daily.ach")["taken"] == 2
    assert await room.gate.process_all(bank) == 0  # its time has not come

    assert await try_now(room) == 1
    _, again = await failing_file(bank)
    assert again.tries == 2
    assert again.again_at > wall_now() + timedelta(seconds=45)
    # Another file of its name arrives meanwhile and is not put away with it.
    await room.other.transmit("daily.ach", write_file(file_of(entry(6, account))))
    await owner.execute(_MEND)
    assert await try_now(room) == 2
    assert await retries.list_failing(bank.pool) == []
    done = await store.list_files(bank.pool, rail="ACH", state="PROCESSED")
    told = [json.loads(each.report or "") for each in done if each.file_id == file.file_id]
    assert [(each["entries"], each["taken"], each["held"], each["stuck"]) for each in told] == [(4, 3, 1, [])]
    assert len(done) == 3
    assert await room.booked() == (5, 1)
    await room.prove()


async def test_a_rail_file_with_too_many_failed_lines_is_postponed(bank, new_holder, room, owner, monkeypatch):
    account = await account_of(bank, await new_holder())
    monkeypatch.setattr(booking, "STUCK_LINES_MAX", 1)
    await owner.execute(_BREAK)
    lines = [entry(n, account, amount=ODD) for n in (1, 2)]
    await room.put("odd.ach", file_of(*lines, entry(3, account)))
    _, trouble = await failing_file(bank)
    assert not trouble.stuck
    assert re.match(CONSTRAINED, trouble.words())
    await owner.execute(_MEND)
    assert await try_now(room) == 1
    assert room.report("odd.ach")["taken"] == 3
    await room.prove()


async def test_a_refused_line_is_retried_under_a_new_key_and_booked_once(bank, new_holder, room, monkeypatch):
    account = await account_of(bank, await new_holder())
    book = ReceiveAch.rule

    def refuse(books, cmd, ctx):
        if cmd.entry.amount == ODD:
            raise NotFound("There is no bill under this CUSIP.")
        return book(books, cmd, ctx)

    with monkeypatch.context() as broken:
        broken.setattr(ReceiveAch, "rule", refuse)
        await room.put("odd.ach", file_of(entry(1, account, amount=ODD), entry(2, account)))
        await try_now(room)
        _, trouble = await failing_file(bank)
        assert [(each.line, each.refused) for each in trouble.stuck] == [(3, 2)]
        assert trouble.words() == "line 3: There is no bill under this CUSIP."
    assert await try_now(room) == 1
    assert room.report("odd.ach")["taken"] == 2
    assert await room.booked() == (2, 0)
    await room.prove()


async def test_a_failed_message_of_a_wire_file_is_reported_and_blocks_no_other(bank, holder, fedwire, owner):
    account = await fedwire.account_of(holder)
    await owner.execute(f"ALTER TABLE wire ADD CONSTRAINT odd CHECK (amount <> {ODD}) NOT VALID")
    wires = [await fedwire.payment(str(cents), account, cents) for cents in (5_00, ODD, 7_00)]
    await fedwire.drop("odd.xml", *wires)
    assert sorted(each.amount for each in await fedwire.wires(holder)) == [5_00, 7_00]
    await fedwire.drop("good.xml", await fedwire.payment("two", account))
    assert fedwire.taken("good.xml") == ["COMPLETED"]
    file, trouble = await failing_file(bank)
    assert (file.name, trouble.tries) == ("odd.xml", 1)
    assert re.match(f"line 4: FIToFICstmrCdtTrf: {CONSTRAINED}", trouble.words())
    assert [each.trace for each in trouble.stuck] == [wires[1].message.message_id]
    assert await fedwire.room.gate.process_all(bank) == 0
    await owner.execute("ALTER TABLE wire DROP CONSTRAINT odd")
    await retries.retry_now(bank.pool, file, wall_now())
    assert await fedwire.room.gate.process_all(bank) == 1
    assert fedwire.taken("odd.xml") == ["COMPLETED"] * 3


def test_file_retry_delays_double_up_to_an_hour():
    seconds = [retry_delay(tries).total_seconds() for tries in (1, 2, 3, 7, 8, 500)]
    assert seconds == [30, 60, 120, 1_920, 3_600, 3_600]


def test_a_retry_state_reports_its_first_stuck_line_and_the_count_of_others():
    stuck = [StuckLine(line=3, trace="1", error="odd"), StuckLine(line=9, trace="2", error="even")]
    assert RetryState(tries=1, again_at=wall_now(), stuck=stuck).words() == "line 3: odd (and 1 more)"


def test_an_error_is_summarized_in_one_line_without_row_data():
    assert error_summary(InvariantError("CheckViolationError: it is odd\nDETAIL: Failing row contains (7).")) == (
        "CheckViolationError: it is odd"
    )
    assert error_summary(ValueError("x" * 900)) == repr(ValueError("x" * 900))[:300]
    assert error_summary(InvariantError("")) == "InvariantError"
