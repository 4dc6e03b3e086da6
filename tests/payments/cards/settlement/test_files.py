"""Settlement files of the card processor: what they say is booked, and settles to the cent with the reserve."""

import json
from datetime import date

import msgspec
import pytest
from tests.support.cards import TUESDAY, Processor, chargeback, fee, presentment, refund, representment

from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.cards.settlement import inbound, store
from billfold.payments.cards.settlement.inbound import book_record
from billfold.platform import ids
from billfold.platform.dates import et_instant

HOLDER = "SELECT customer_id FROM card WHERE card_id = $1"
RETRY = """UPDATE rail_file SET report = jsonb_set(report::jsonb, '{again_at}', '"2025-01-01T00:00:00Z"')::json"""


@pytest.fixture
async def processor(bank):
    return Processor(bank)


@pytest.fixture
async def card(processor, new_holder):
    holder = await new_holder()
    await holder.deposit(10_000_00)
    return await processor.card(holder)


async def reconciled(processor):
    return await store.reconcile(processor.bank.pool, bank_customer_id(processor.bank.seed))


async def test_a_card_settlement_file_is_booked_and_its_net_equals_the_reserve_payment(processor, card):
    bought = presentment(card, 120_00, interchange=1_80)
    report = await processor.send(
        bought,
        presentment(card, 30_05),
        refund(card, 20_00),
        chargeback(bought, 50_00),
        representment(bought, 50_00),
        fee(75),
        fee(1_25, "PROCESSOR"),
    )
    assert (report["held"], report["stuck"], report["records"]) == ([], [], 7)
    net = 120_00 + 30_05 - 20_00 + 2_00 - (1_80 + 30 - 20)
    assert report["net_settlement"] == net
    (day,) = await reconciled(processor)
    assert (day.file_net, day.difference, day.is_settled) == (net, 0, False)
    assert await processor.balances("rail:card", "interchange", "card_fees") == (net, 1_90, -2_00)
    await processor.clean()
    await processor.clock.advance_business_days(2)
    (day,) = await reconciled(processor)
    assert (day.difference, day.unsettled, day.reserve) == (0, 0, net)
    assert await processor.balances("rail:card") == (0,)
    await processor.clean()


def damaged(content, number, change):
    """Return a file with one line changed."""
    lines = content.split(b"\n")
    lines[number - 1] = change(lines[number - 1])
    return b"\n".join(lines)


def beyond(content, *names):
    """Return a file with a line that cannot be read, for which the trailer leaves more than any record has."""
    lines = damaged(content, 3, lambda _: b"garbage").split(b"\n")
    trailer = msgspec.json.decode(lines[-2])
    for holder, name in ((trailer["presentments"], "amount"), (trailer, "interchange"), (trailer, "net_settlement")):
        holder[name] += 10**25 if name in names else 0
    return b"\n".join((*lines[:-2], json.dumps(trailer).encode(), b""))


DAMAGES = (
    (lambda content: content[:-40], "line 4"),
    (lambda content: b"\n".join(content.split(b"\n")[:-2]), "line 3"),
    (lambda content: content.split(b"\n")[0], "no header and trailer"),
    (lambda _: b"", "no header and trailer"),
    (lambda content: content.replace(b'"net_settlement":', b'"net_settlement":1'), "net_settlement"),
    (lambda content: content.replace(b'"records":2', b'"records":3'), "records is 3"),
    (lambda content: damaged(content, 3, lambda line: line.replace(b'"amount":3005', b'"amount":3006')), "15006"),
    (lambda content: content.replace(b"061199992", b"021000021"), "for bank 021000021"),
    (lambda content: content.replace(b'"version":1', b'"version":2'), "line 1"),
    (lambda content: content.replace(b"2025-06-03", b"2025-06-07"), "nothing settles on 2025-06-07"),
    (lambda content: content.replace(b"2025-06-03", b"2025-07-03"), "too far"),
    (lambda content: content.replace(b'"currency":"USD"', b'"currency":"EUR"'), "USD"),
    (lambda content: b"\xff" + content, "line 1"),
    # One line cannot be read, and the trailer does not say what it comes to.
    (lambda content: damaged(content, 3, lambda _: b"garbage").replace(b'"count":2', b'"count":1'), "records"),
    (lambda content: beyond(content, "amount", "net_settlement"), "presentments"),
    (lambda content: beyond(content, "amount", "interchange"), "interchange"),
)


async def test_a_damaged_card_settlement_file_is_refused_and_not_booked(processor, card):
    content = processor.file(presentment(card, 120_00), presentment(card, 30_05))
    for damage, reason in DAMAGES:
        report = await processor.put(damage(content))
        assert report["state"] == "REFUSED"
        assert reason in " ".join(f"line {each['line']}: {each['reason']}" for each in report["mistakes"])
    assert await reconciled(processor) == []
    assert (await processor.put(content))["state"] == "PROCESSED"


async def test_a_duplicate_card_settlement_file_is_refused_under_any_name(processor, card):
    content = processor.file(presentment(card, 120_00))
    assert (await processor.put(content))["state"] == "PROCESSED"
    again = await processor.put(content, "again.jsonl")
    assert "same content" in again["mistakes"][0]["reason"]
    other = await processor.put(processor.file(fee(5), reference="CYCLE-1"))
    assert other["mistakes"][0]["reason"] == "another file has the reference CYCLE-1"
    assert await processor.balances("rail:card") == (120_00 - 1_20,)
    await processor.clean()


async def test_an_invalid_settlement_record_is_held_and_the_rest_of_the_file_booked(processor, card, new_holder):
    unknown, good = presentment(ids.new(), 40_00), presentment(card, 10_00)
    lost = presentment(card, 7_77)
    content = processor.file(
        unknown, good, good, refund(ids.new(), 5_00), chargeback(presentment(card, 1_00)), representment(good), lost
    )
    content = damaged(content, 8, lambda line: line[:-9])
    report = await processor.put(content)
    assert report["state"] == "PROCESSED"
    reasons = {each["line"]: each["reason"] for each in report["held"]}
    assert reasons.pop(8).startswith("unreadable: ")
    assert reasons == {
        2: "unknown-card",
        4: "repeated",
        5: "unknown-card",
        6: "not-found",
        7: "representment-not-possible",
    }
    (day,) = await reconciled(processor)
    assert (day.records, day.held, day.difference) == (10_00, 40_00 + 10_00 - 5_00 - 1_00 + 10_00 + 7_77, 0)
    again = await processor.send(good, settles_on=TUESDAY)
    assert [each["reason"] for each in again["held"]] == ["repeated"]
    await processor.clean()
    await processor.clock.advance_business_days(2)
    assert await processor.balances("rail:card") == (0,)
    await processor.clean()


async def test_a_failed_settlement_record_is_retried_without_double_booking(processor, card, monkeypatch):
    bad, early = presentment(card, 11_00), presentment(card, 5_00)

    async def fails(bank, record, *others):
        if record == bad:
            raise RuntimeError("no room")
        await book_record(bank, record, *others)

    await book_record(processor.bank, early, await processor.bank.pool.fetchval(HOLDER, card), TUESDAY)
    monkeypatch.setattr(inbound, "book_record", fails)
    report = await processor.put(processor.file(bad, presentment(card, 22_00), early, fee(1)))
    assert [(each["line"], "no room" in each["error"]) for each in report["stuck"]] == [(2, True)]
    (day,) = await reconciled(processor)
    assert (day.difference, day.records) == (11_00, 27_00)
    assert [(each.stated, each.booked) for each in await store.list_differences(processor.bank.pool)] == [(11_00, None)]
    monkeypatch.undo()
    await processor.bank.pool.execute(RETRY)
    await processor.files.process_all(processor.bank)
    (day,) = await reconciled(processor)
    assert (day.difference, day.records) == (0, 38_00)
    await processor.clean()


async def test_a_settlement_record_that_contradicts_its_earlier_booking_is_held(processor, card):
    bought = presentment(card, 20_00)
    holder = await processor.bank.pool.fetchval(HOLDER, card)
    await book_record(processor.bank, bought, holder, TUESDAY)
    report = await processor.send(msgspec.structs.replace(bought, amount=25_00))
    assert [each["reason"] for each in report["held"]] == ["differs-from-booked"]
    (named,) = await store.list_differences(processor.bank.pool)
    assert (named.record_id, named.stated, named.booked) == (bought.record_id, None, 20_00)
    (day,) = await reconciled(processor)
    assert day.difference == -20_00


async def test_paying_out_an_unsettled_card_refund_over_a_weekend_charges_interest(processor, new_holder):
    """Money the processor pays on Monday earns nothing before: paying it out on Friday evening costs the interest."""
    anna, bert = await new_holder(), await new_holder()
    card = await processor.card(anna)
    await processor.clock.set_to(et_instant(date(2025, 6, 6), 17, 30))
    await processor.send(refund(card, 1_000_000_00), settles_on=date(2025, 6, 9))
    paid = (await anna.transfer(anna.place, bert.place, None))["amount"]
    fees = await processor.bank.pool.fetch("SELECT amount FROM transaction WHERE details->>'fee_type' = 'SAME_DAY_FEE'")
    assert 300_00 < sum(row["amount"] for row in fees) < 600_00
    assert paid == 1_000_000_00 - sum(row["amount"] for row in fees)
    await processor.clean()


async def test_a_settled_card_refund_is_paid_out_without_a_fee(processor, new_holder):
    anna, bert, carl = await new_holder(), await new_holder(), await new_holder()
    card, other = await processor.card(anna), await processor.card(carl)
    await processor.send(refund(card, 1_000_00), refund(other, 50_00), settles_on=TUESDAY)
    assert await processor.bank.pool.fetchval("SELECT count(*) FROM trade WHERE activity = 'BUY'") == 1
    await processor.clock.set_to(et_instant(TUESDAY, 10))
    assert (await carl.transfer(carl.place, bert.place, None))["amount"] == 50_00
    await processor.clean()
