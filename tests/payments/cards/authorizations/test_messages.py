"""Messages of the card processor: signed, once or twice, in any order, and answered in time."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import httpx
import msgspec
import pytest
from tests.support.applications import run_jobs
from tests.support.damage import report_of

from billfold.ledger.scheduler import schedule
from billfold.ledger.types import ScheduledJob
from billfold.payments.cards.authorizations import messages, store
from billfold.payments.cards.authorizations.checks import check_rows
from billfold.payments.cards.authorizations.messages import processor_key, sign_message
from billfold.platform.clock import wall_now
from billfold.wiring.server import make_host_router

SHOP = {"name": "Shop", "category_code": "5411"}


class Processor:
    """Sends messages as the processor of cards does."""

    def __init__(self, client, bank, card):
        self.client, self.card = client, card
        self.key = processor_key(bank.settings, bank.seed) or b""

    def message(self, kind="AUTHORIZATION", amount=40_00, reference="1", **fields):
        return {
            "message_id": str(uuid4()),
            "type": kind,
            "card_id": self.card,
            "network_reference": reference,
            "amount": amount,
            "merchant": SHOP,
            "transmitted_at": datetime(2025, 6, 2, 13, tzinfo=UTC),
            **fields,
        }

    async def post(self, message, *, age=0, key=None, signature=None):
        body = msgspec.json.encode(message)
        timestamp = str(int(wall_now().timestamp()) - age)
        signed = signature or sign_message(key or self.key, timestamp, body)
        headers = {"x-timestamp": timestamp, "x-signature": signed, "content-type": "application/json"}
        return await self.client.post("/v1/messages/", content=body, headers=headers)

    async def decide(self, *args, message=None, **fields):
        answer = await self.post(message or self.message(*args, **fields))
        assert answer.status_code == 200, answer.text
        decided = answer.json()
        return decided["decision"], decided["approved_amount"], decided["reason"]


@pytest.fixture
async def processor(cardholder):
    bank = cardholder.desk.bank
    router = make_host_router(bank)
    transport = httpx.ASGITransport(cast("Any", router), raise_app_exceptions=False)
    async with router.lifespan(), httpx.AsyncClient(transport=transport, base_url=bank.settings.cards_origin) as client:
        yield Processor(client, bank, cardholder.card)


async def test_a_card_message_with_a_wrong_or_stale_signature_is_refused(processor, cardholder):
    message = processor.message()
    for wrong in (
        {"key": b"another key of thirty-two bytes!"},
        {"age": 301},
        {"age": -330},
        {"signature": "00" * 32},
        {"signature": b"\xe9"},
        {"signature": "none"},
    ):
        answer = await processor.post(message, **wrong)
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid-signature")
    assert (await processor.client.post("/v1/messages/", json=message | {"transmitted_at": None})).status_code == 401
    for merchant in ({"name": " ", "category_code": "5411"}, {"name": "Shop", "category_code": "5411\n"}):
        assert (await processor.post(message | {"merchant": merchant})).status_code == 422
    for field, value in (
        ("merchant", SHOP | {"city": "Van\ntorp"}),
        ("amount", None),
        ("amount", -1),
        ("currency", "EUR"),
        ("type", "GIFT"),
        ("network_reference", "1\n"),
        ("pan", "4111"),
    ):
        answer = await processor.post(message | {field: value})
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    assert await cardholder.money() == []
    for path in ("/api/v1/login/", "/health", "/docs/"):
        assert (await processor.client.get(path)).status_code == 404


async def test_a_late_card_decision_is_reversed_and_an_advice_may_still_hold_it(processor, cardholder, monkeypatch):
    message = processor.message()
    monkeypatch.setattr(messages, "DEADLINE_SECONDS", 0)
    assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    answer = await processor.post(processor.message("REVERSAL", reference="5"))
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    monkeypatch.undo()
    assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT"), "before it is reversed too"
    bank = cardholder.desk.bank
    async with bank.pool.acquire() as conn:
        assert (await report_of(conn, check_rows)).is_clean
        job = await conn.fetchval("DELETE FROM scheduled_job j WHERE kind = 'card.late' RETURNING j")
        assert (await report_of(conn, check_rows)).first.table == "card_late_message"
        await schedule(conn, [ScheduledJob(*job)])
    await run_jobs(bank)
    async with bank.pool.acquire() as conn:
        assert (await report_of(conn, check_rows)).is_clean
    assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    assert [kind for kind, _ in await cardholder.money()] == ["approved", "on_hold", "reversed"]
    assert (await cardholder.reserved(), await cardholder.listed()) == (0, [])
    assert await processor.decide("ADVICE") == ("APPROVED", 40_00, None)
    assert await cardholder.listed() == [("DEBIT", "BOOKED", 40_00)]
    more = processor.message("INCREMENT", 5_00)
    monkeypatch.setattr(messages, "DEADLINE_SECONDS", 0)
    assert await processor.decide(message=more) == ("DECLINED", 0, "TIMED_OUT")
    monkeypatch.undo()
    assert await processor.decide(message=more) == ("DECLINED", 0, "TIMED_OUT"), "before it is reversed too"
    await run_jobs(cardholder.desk.bank)
    assert await processor.decide(message=more) == ("DECLINED", 0, "TIMED_OUT")
    assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    assert await cardholder.reserved() == 40_00


async def test_an_advice_holds_a_purchase_that_was_approved_too_late_and_is_not_reversed_yet(
    processor, cardholder, monkeypatch
):
    monkeypatch.setattr(messages, "DEADLINE_SECONDS", 0)
    assert await processor.decide() == ("DECLINED", 0, "TIMED_OUT")
    monkeypatch.undo()
    assert await processor.decide("ADVICE") == ("APPROVED", 40_00, None)
    await run_jobs(cardholder.desk.bank)
    assert await cardholder.reserved() == 40_00
    monkeypatch.setattr(messages, "DEADLINE_SECONDS", 0)
    assert await processor.decide("INCREMENT", 5_00) == ("DECLINED", 0, "TIMED_OUT")
    monkeypatch.undo()
    assert await processor.decide("REVERSAL", None) == ("APPROVED", 40_00, None), "not the increment, too"
    assert await cardholder.reserved() == 0


async def test_an_advice_keeps_what_was_approved_before_it_and_is_found_to_be_late_after_it(
    processor, cardholder, monkeypatch
):
    message, keep_late, late = processor.message(), store.keep_late, []

    async def keep_later(_conn, row):
        late.append(row)

    with monkeypatch.context() as hurry:
        hurry.setattr(messages, "DEADLINE_SECONDS", 0)
        hurry.setattr(store, "keep_late", keep_later)
        assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    bank = cardholder.desk.bank
    async with bank.pool.acquire() as conn:
        await conn.execute("DELETE FROM scheduled_job WHERE kind = 'card.late'")  # not yet
    assert await processor.decide("ADVICE") == ("APPROVED", 40_00, None)
    async with bank.pool.acquire() as conn:
        await keep_late(conn, *late)
        await schedule(conn, [ScheduledJob("card.late", late[0].message_id, late[0].customer_id, await bank.now(conn))])
    await run_jobs(bank)
    assert await cardholder.reserved() == 40_00
    assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    async with bank.pool.acquire() as conn:
        assert (await report_of(conn, check_rows)).is_clean
    assert await processor.decide("REVERSAL", None) == ("APPROVED", 40_00, None)
    assert await cardholder.reserved() == 0


async def test_an_advice_waits_for_a_late_message_whose_storing_was_given_up_and_goes_on(
    processor, cardholder, monkeypatch
):
    pool, keep_late, given_up = cardholder.desk.bank.pool, store.keep_late, []

    async def give_up(_conn, late):
        given_up.append(late)
        raise TimeoutError

    with monkeypatch.context() as hurry:
        hurry.setattr(messages, "DEADLINE_SECONDS", 0)
        hurry.setattr(store, "keep_late", give_up)
        assert (await processor.post(processor.message())).status_code == 503
    async with pool.acquire() as conn, conn.transaction():
        await keep_late(conn, *given_up)
        now = await cardholder.desk.bank.now(conn)
        await schedule(conn, [ScheduledJob("card.late", given_up[0].message_id, given_up[0].customer_id, now)])
        advised = asyncio.create_task(processor.decide("ADVICE"))
        await asyncio.wait([advised], timeout=0.5)
        assert not advised.done()
    assert await advised == ("APPROVED", 40_00, None)
    await run_jobs(cardholder.desk.bank)
    assert await cardholder.reserved() == 40_00


@pytest.mark.parametrize("kind", ["ADVICE", "AUTHORIZATION"])
async def test_a_late_message_that_a_node_has_only_prepared_is_waited_for_before_what_depends_on_it_is_decided(
    processor, cardholder, monkeypatch, kind
):
    message, keep_late, prepared = processor.message(), store.keep_late, []

    async def prepare(_conn, late):
        prepared.append(late)

    async def end_prepared(_conn):
        async with cardholder.desk.bank.pool.acquire() as conn:
            await keep_late(conn, *prepared)

    with monkeypatch.context() as hurry:
        hurry.setattr(messages, "DEADLINE_SECONDS", 0)
        hurry.setattr(store, "keep_late", prepare)
        assert await processor.decide(message=message) == ("DECLINED", 0, "TIMED_OUT")
    monkeypatch.setattr(store, "await_prepared", end_prepared)
    is_advice = kind == "ADVICE"
    other = {"type": kind, "message_id": str(uuid4())} if is_advice else {}
    decided = await processor.decide(message=message | other)
    assert decided == (("APPROVED", 40_00, None) if is_advice else ("DECLINED", 0, "TIMED_OUT"))
    await run_jobs(cardholder.desk.bank)
    assert await cardholder.reserved() == (40_00 if is_advice else 0)
