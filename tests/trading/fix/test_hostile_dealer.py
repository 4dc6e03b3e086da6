"""Mistakes and attacks of a dealer: the next message is taken, and other dealers do not wait."""

import asyncio
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.whole_bank import expect_clean
from tests.trading.fix.scripted_desk import fill_of
from tests.trading.fix.simulated_desk import until

from billfold.sandbox.dealers.books import DealerBooks
from billfold.trading.fix import session
from billfold.trading.fix.codec import encode
from billfold.trading.fix.store import list_sessions

AT = (52, "20250602-13:00:00.000")


def beat(dealer, *, kind="0", seq=None, text="x"):
    header = [(49, "DEALER"), (56, "BANK"), (34, seq or dealer.next_out), AT]
    return encode(kind, header, [(58, text)])


DAMAGE = {
    "garbage": lambda _: bytes(range(256)) * 8,
    "a length that is too short": lambda dealer: re.sub(rb"\x019=\d+", b"\x019=20", beat(dealer)),
    "a message of 10 MB": lambda dealer: b"8=FIX.4.4\x019=10000000\x0135=8\x01" + b"58=" + b"x" * 200_000,
    "a field without an end": lambda _: b"8" * 200_000,
    "names of others": lambda dealer: beat(dealer).replace(b"BANK", b"KNAB"),
    "a number that is too low": lambda dealer: beat(dealer, seq=1),
    "a number of 5,000 digits": lambda dealer: beat(dealer, seq="9" * 5_000),
    "no number": lambda dealer: beat(dealer, seq="x"),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_session_comes_back_and_says_why_it_ended_when_nothing_more_can_be_read(scripted, order, damage):
    desk, dealer = scripted
    logons = len(dealer.of_type("A"))
    dealer.writer.write(DAMAGE[damage](dealer))

    async def on_again():
        found = await list_sessions(desk.bank.pool)
        return found if found[0].is_on and len(dealer.of_type("A")) > logons else None

    [found] = await until(on_again)
    assert found.problem
    await dealer.send("4", [(36, dealer.next_out)], seq=dealer.next_out)  # instead of what is requested again
    await dealer.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")
    await expect_clean(desk.bank)


def damaged(frame):
    """Replace placeholders of a message by bytes that are no text, and mend its checksum."""
    body = frame[:-7].replace(b"#", b"\xe9").replace(b"@", b"\0")
    return body + f"10={sum(body) % 256:03}\x01".encode()


async def test_a_message_is_taken_when_bytes_of_it_are_no_text(scripted, order):
    desk, dealer = scripted
    for kind in ("0", "8@"):
        dealer.writer.write(damaged(beat(dealer, kind=kind, text="na#ve@")))
        dealer.next_out += 1
    dealer.writer.write(beat(dealer)[:-4] + b"999\x01")  # its number is not used up
    await dealer.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")
    [refused] = await desk.seen(1)
    assert refused.type == "8\ufffd"
    assert "its checksum or length is wrong" in ((await list_sessions(desk.bank.pool))[0].problem or "")
    assert len(dealer.of_type("A")) == 1


async def test_a_reset_to_a_number_of_the_past_is_rejected(scripted, order):
    desk, dealer = scripted
    before = (await list_sessions(desk.bank.pool))[0].next_in
    await dealer.send("4", [(36, 1)])

    async def rejected():
        return dealer.of_type("3")

    [reject] = await until(rejected)
    assert "NewSeqNo is below" in reject.fields[58]
    [state] = await list_sessions(desk.bank.pool)
    assert (state.next_in, "NewSeqNo is below" in (state.problem or "")) == (before, True)
    await dealer.send("8", fill_of(order), seq=before)
    await desk.reaches(order, "FILLED")


async def test_a_resend_of_ten_thousand_messages_is_one_gap_fill(scripted, order):
    desk, dealer = scripted
    await desk.bank.pool.execute(SENT_BEFORE)
    dealer.writer.transport.abort()

    async def logged_on_again():
        return len(dealer.of_type("A")) >= 2

    await until(logged_on_again)
    began = time.monotonic()
    await dealer.send("2", [(7, 1), (16, 0)])

    async def filled():
        return dealer.of_type("4")

    [gap] = await until(filled)
    assert (gap.seq, int(gap.fields[36]) > 10_000, time.monotonic() - began < 1) == (1, True, True)
    await dealer.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")


SENT_BEFORE = """
WITH sent AS (
  INSERT INTO dealer_message (message_id, dealer, session_day, is_inbound, seq, type, content, received_at, status)
  SELECT gen_random_uuid(), dealer, session_day, false, next_out + n, 'D', repeat('x', 500), now(), 'SENT'
    FROM dealer_session, generate_series(0, 9999) n)
UPDATE dealer_session SET next_out = next_out + 10000
"""


@pytest.mark.parametrize("names", [("citadel", "jpm")])
async def test_other_dealers_do_not_wait_while_one_sends_a_flood(scripted):
    _, loud, quiet = scripted
    for _ in range(1_000):
        await loud.send("1", [(112, "FLOOD")])
    await loud.send("8", [(11, "nothing")])
    began = time.monotonic()
    await quiet.send("1", [(112, "ALIVE")])

    async def alive():
        return [each for each in quiet.of_type("0") if each.fields[112] == "ALIVE"]

    await until(alive)
    assert len(loud.of_type("0")) < 1_000
    assert time.monotonic() - began < 1

    async def all_answered():
        return len(loud.of_type("0")) == 1_000

    await until(all_answered, 60)


@pytest.mark.parametrize("names", [("citadel", "jpm")])
async def test_a_fill_of_an_order_that_another_dealer_has_is_refused(scripted, order):
    desk, *dealers = scripted
    [owner] = [each for each in dealers if each.of_type("D")]
    [other] = [each for each in dealers if each is not owner]
    await other.send("8", fill_of(order))
    [refused] = await desk.seen(1)
    assert (refused.status, refused.reason) == ("REFUSED", "no such order was sent to this dealer")
    await owner.send("8", fill_of(order))
    await desk.reaches(order, "FILLED")
    await expect_clean(desk.bank)


class StuckWriter:
    """The connection to a dealer that reads nothing any more."""

    def __init__(self):
        self.transport, self.is_cut = self, False

    def write(self, _):
        pass

    async def drain(self):
        await asyncio.Event().wait()

    def abort(self):
        self.is_cut = True


async def test_a_connection_is_cut_when_the_dealer_reads_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "WRITE_SECONDS", 0.01)

    async def now():
        return datetime.now(UTC)

    async def ignore(_):
        pass

    writer: Any = StuckWriter()
    books, streams = DealerBooks(tmp_path), (asyncio.StreamReader(), writer)
    stuck = session.Session(("BANK", "DEALER"), books, streams, now=now, on_message=ignore)
    with pytest.raises(TimeoutError):
        await stuck.send("D", [])
    books.close()
    assert writer.is_cut
