"""Payments by card while the bank is slow or unreachable."""

import asyncio
import sys
from time import monotonic

from tests.support.card_network import Place, connected, connected_in_time, pack, unpack

from billfold.sandbox.card_processor.host.server import CONNECTIONS_MAX, UNDER_WAY_MAX
from billfold.sandbox.card_processor.host.settings import write_settings


async def hang(_):
    await asyncio.sleep(30)


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_late_authorization_response_of_the_bank_is_reversed(place):
    bank = place.bank
    async with place.serving() as switch:
        bank.decide = hang
        first = switch.purchase(5000)
        began = monotonic()
        assert await switch.code("0100", first) == "91"
        assert monotonic() - began < 2.0
        bank.decide = lambda message: {"decision": "APPROVED", "approved_amount": message["amount"] or 0}
        await until(lambda: bank.of("REVERSAL"))
        (undone,) = bank.of("REVERSAL")
        assert (undone["network_reference"], undone["amount"]) == (bank.messages[0]["network_reference"], None)
        assert await switch.code("0101", first) == "91"
        assert len(bank.messages) == 2


async def test_stand_in_approvals_reach_the_bank_after_a_killed_processor_restarts(tmp_path, bank):
    place = Place(tmp_path / "processor", bank, stand_in_cents=6000)
    write_settings(place.folder, place.settings)
    words = (sys.executable, "-m", "billfold.sandbox.card_processor.host.server", str(place.folder))
    await bank.close()
    with place.listener() as listener:
        process = await asyncio.create_subprocess_exec(
            *words, str(listener.fileno()), pass_fds=(listener.fileno(),), stderr=asyncio.subprocess.DEVNULL
        )
    async with connected_in_time(place) as switch:
        first, later = switch.purchase(5000), switch.purchase(1001)
        assert await switch.code("0100", first) == "00"
        assert await switch.code("0100", later) == "91"  # above what the card may have in a day
        cash_or_refund = [switch.purchase(100, de3=code) for code in ("010000", "200000", "090000")]
        assert [await switch.code("0200", fields) for fields in cash_or_refund] == ["91", "91", "91"]
        assert await switch.code("0120", switch.purchase(2500)) == "00"
        assert await switch.code("0420", switch.purchase(5000, de37=first[37])) == "00"
        process.kill()
        await process.wait()
    # It is there, and cannot decide yet.
    approve, answers = bank.decide, iter([{"decision": "DECLINED", "reason": "UNAVAILABLE"}])
    bank.decide = lambda message: next(answers, None) or approve(message)
    await bank.open()
    async with place.serving() as switch:
        await bank.received(4)
        assert bank.messages.pop(0) in bank.messages
        assert await switch.code("0101", first) == "00"
        assert await switch.code("0100", switch.purchase(700, de11="000099")) == "00"
    sent = [(each["type"], each["amount"]) for each in bank.messages[:3]]
    assert sorted(sent, key=str) == [("ADVICE", 2500), ("ADVICE", 5000), ("REVERSAL", None)]
    assert sent.index(("ADVICE", 5000)) < sent.index(("REVERSAL", None))
    assert [each["amount"] for each in bank.messages[3:]] == [700]
    stored = b"".join(each.read_bytes() for each in place.folder.iterdir())
    assert place.card.pan.encode() not in stored


async def test_a_flooding_or_hanging_network_connection_does_not_block_others(place):
    bank, release = place.bank, asyncio.Event()

    async def wait(message):
        if message["amount"] == 999:
            await release.wait()
        return {"decision": "APPROVED", "approved_amount": message["amount"]}

    bank.decide = wait
    async with place.serving() as switch, connected(place.port, place.card.pan) as flood:
        for number in range(UNDER_WAY_MAX + 20):
            await flood.send_raw(pack("0100", flood.purchase(999, de37=f"F{number:011}")))
        flood.writer.write(b"\x01")  # and half a length that never ends
        await until(lambda: len(bank.messages) == UNDER_WAY_MAX)
        for _ in range(10):
            assert await switch.code("0100", switch.purchase(100)) == "00"
        assert len(bank.messages) == UNDER_WAY_MAX + 10
        release.set()
        assert [unpack(await flood.receive_raw())[1][39] for _ in range(UNDER_WAY_MAX + 20)] == ["00"] * (
            UNDER_WAY_MAX + 20
        )
        others = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(CONNECTIONS_MAX)]
        ended = [asyncio.create_task(reader.read()) for reader, _ in others]
        await until(lambda: sum(each.done() for each in ended) == 2)  # those beyond the most
        for _, writer in others:
            writer.close()
        await asyncio.gather(*ended, return_exceptions=True)
