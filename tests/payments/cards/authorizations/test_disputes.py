"""Disputes of card payments: credited provisionally, decided, withdrawn, and never paid twice."""

import asyncio
from uuid import UUID

import msgspec
import pytest
from tests.support.applications import PICTURE, run_jobs
from tests.support.whole_bank import expect_clean, with_limits
from tests.support.world import UNKNOWN

from billfold.dual_control.decisions import confirm
from billfold.dual_control.store import PROPOSALS
from billfold.identity.operators import Operator
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.cards.authorizations.commands import Merchant, RefundCard, references_of
from billfold.payments.cards.authorizations.disputes import cli
from billfold.payments.cards.authorizations.disputes.commands import DisputeReason, OpenDispute
from billfold.platform import ids

DISPUTES = "/api/v1/card-disputes/"
EVIDENCE = "/api/v1/documents/DISPUTE_EVIDENCE/"
PNG = {"content-type": "image/png"}


async def bought(holder, cents, **fields):
    """Return the record and the body that disputes a payment that has just cleared."""
    made = await holder.simulate("clearing", amount_usdc=cents, **fields)
    body = {"pocket_id": holder.pocket.id, "transaction_id": made["transaction_id"], "reason": "NOT_RECEIVED"}
    return made["record_id"], body


async def shown(holder, dispute):
    """Return (status, provisional credit, recovered) of a dispute."""
    found = await holder.desk.get(f"{DISPUTES}{dispute['id']}/")
    return found["status"], found["provisional_credit"]["value"], found["recovered"]["value"]


async def credited(holder, **fields):
    """Let the time of provisional credits come."""
    await holder.desk.later(days=20, **fields)
    await run_jobs(holder.desk.bank)


async def advanced(holder):
    """Return what the bank has advanced to the customer, and what its Pocket owes."""
    sql = "SELECT coalesce(sum(debits - credits), 0)::bigint FROM account WHERE kind = $2 AND customer_id = $1::uuid"
    return [await holder.desk.bank.pool.fetchval(sql, holder.pocket.key[0], kind) for kind in ("disputes", "owed")]


def at(name):
    """Return the fields of a payment to another merchant, of which nothing else is known."""
    return {"merchant": {"name": name, "category_code": "5732"}}


async def refund(holder, record, cents, reference=None):
    await holder.desk.bank.engine.submit(await refunding(holder, record, cents, reference))


async def refunding(holder, record, cents, reference=None):
    """Return the command of a refund by the merchant of a purchase, with a reference."""
    sql = "SELECT card_id, merchant::text AS merchant, settles_on FROM card_payment WHERE record_id = $1::uuid"
    row = await holder.desk.bank.pool.fetchrow(sql, record)
    return RefundCard(
        caller="test",
        key=ids.new(),
        customers=(holder.pocket.key[0],),
        references=references_of(row["card_id"], reference),
        record_id=ids.new(),
        card_id=row["card_id"],
        amount=cents,
        settles_on=row["settles_on"],
        network_reference=reference,
        merchant=msgspec.json.decode(row["merchant"], type=Merchant),
    )


async def decided(bank, command, dispute):
    """Propose a decision as one operator and confirm it as another."""
    await command(bank, UUID(dispute["id"]), "Evidence")
    (proposal, *_) = await PROPOSALS.rows(bank.pool, bank_customer_id(bank.seed), limit=1)
    return await confirm(bank, proposal.proposal_id, by=Operator.of_command_line("second"))


async def evidence(member):
    """Return the id of a document that a member has uploaded."""
    return (await member.ask("POST", EVIDENCE, PICTURE, status=201, headers=PNG)).json()["document_id"]


async def check_documents(member, others, path):
    """Check that documents are added to an open dispute once, by its customer, with an event and an audit entry."""
    first, second = [await evidence(member) for _ in range(2)]
    for wrong in ([], ["x"], [first] * 11):
        answer = await member.send("POST", path, {"document_ids": wrong})
        assert answer.status_code == 422
    for other in others:
        foreign = await evidence(other) if other is others[0] else UNKNOWN
        await other.refused("POST", path, {"document_ids": [first]}, status=404, code="not-found")
        await member.refused("POST", path, {"document_ids": [second, foreign]}, status=404, code="not-found")
    bodies = [[first], [first, first], [second, first], [second]]
    await asyncio.gather(*(member.post(path, {"document_ids": each}, status=200) for each in bodies))
    found = await member.post(path, {"document_ids": [first]}, status=200)
    assert sorted(found["document_ids"]) == sorted([first, second])
    known = "SELECT count(*) FROM event WHERE kind = 'card.dispute.updated' AND payload->>'dispute_id' = $1"
    assert await member.bank.pool.fetchval(known, found["id"]) in {2, 3}, "the opening, and what was added"
    audited = "SELECT array_agg(DISTINCT action) FROM audit_entry WHERE resource_id = $1 AND outcome = 'SUCCESS'"
    assert await member.bank.pool.fetchval(audited, found["id"]) == ["card_dispute.documented", "card_dispute.opened"]
    return found


async def check_documents_late(desk, path, known):
    """Check that nothing is added to a dispute that is decided, not even what it has."""
    for each in known:
        await desk.refused("POST", path, {"document_ids": [each]}, status=422, code="dispute-not-possible")


async def check_limits(member, body):
    """Check that disputes and documents are limited per day."""
    for limit, path, content in ("disputes", DISPUTES, body), ("documents", EVIDENCE, PICTURE):
        with_limits(member.bank, {f"{limit}.customer": 0})
        headers = PNG if content is PICTURE else {}
        refusal = {"status": 429, "code": "usage-limit-reached", "headers": headers}
        assert (await member.refused("POST", path, content, **refusal))["limit"] == f"{limit}.customer"
    with_limits(member.bank, {})


@pytest.fixture
async def holder(cardholder):
    return cardholder


async def test_a_payment_is_disputed_once_in_sum_by_its_own_customer_and_in_time(holder, customer_desks, other_partner):
    desk = holder.desk
    _, body = await bought(holder, 100_00)
    member, stranger = (
        await customer_desks(holder.pocket.customer),
        await customer_desks(await desk.customer("Contoso")),
    )
    for other in (stranger, other_partner):
        await other.refused("POST", DISPUTES, body, status=404, code="not-found")
    held = await holder.authorize(10_00)
    assert held["decision"] == "APPROVED"
    (hold, *_) = (await desk.get(f"{holder.pocket.path}transactions/", {"card[]": holder.card}))["items"]
    await desk.refused("POST", DISPUTES, body | {"transaction_id": hold["id"]}, status=404, code="not-found")
    for field, wrong in (("reason", "BORED"), ("amount_usdc", 0), ("amount_usdc", 2**70), ("document_ids", ["x"])):
        await desk.invalid("POST", DISPUTES, body | {field: wrong}, loc=f"body.{field}" + ".0" * (wrong == ["x"]))
    await desk.refused("POST", DISPUTES, body | {"document_ids": [holder.card]}, status=404, code="not-found")
    await desk.refused("POST", DISPUTES, body | {"amount_usdc": 100_01}, status=422, code="dispute-not-possible")
    sent = await asyncio.gather(*(desk.send("POST", DISPUTES, body | {"amount_usdc": 60_00}) for _ in range(3)))
    assert sorted(each.status_code for each in sent) == [201, 422, 422]
    rest = await member.post(DISPUTES, body)
    assert (rest["amount"]["value"], rest["status"], rest["provisional_credit"]["value"]) == (40_00, "OPENED", 0)
    await desk.refused("POST", DISPUTES, body, status=422, code="dispute-not-possible")
    rest = await check_documents(member, (stranger, other_partner), f"{DISPUTES}{rest['id']}/documents/")
    assert (await member.post(f"{DISPUTES}{rest['id']}/withdraw/", b"", status=200))["status"] == "WITHDRAWN"
    await check_documents_late(desk, f"{DISPUTES}{rest['id']}/documents/", rest["document_ids"])
    await member.refused("POST", f"{DISPUTES}{rest['id']}/withdraw/", status=422, code="dispute-not-possible")
    for other in (stranger, other_partner):
        await other.refused("POST", f"{DISPUTES}{rest['id']}/withdraw/", status=404, code="not-found")
    assert len((await member.get(DISPUTES))["items"]) == 2
    assert len((await desk.get(DISPUTES, {"customer_id": holder.pocket.customer, "status[]": "OPENED"}))["items"]) == 1
    await check_limits(member, body)
    await desk.later(days=121)
    await desk.refused("POST", DISPUTES, body, status=422, code="dispute-not-possible")
    await run_jobs(desk.bank)
    await expect_clean(desk.bank)


async def test_a_provisional_credit_is_repaid_by_the_chargeback_and_lost_with_the_representment(holder, bank):
    record, body = await bought(holder, 100_00)
    dispute = await holder.desk.post(DISPUTES, body)
    before = await holder.desk.value(holder.pocket)
    await credited(holder)
    assert await shown(holder, dispute) == ("PROVISIONALLY_CREDITED", 100_00, 0)
    assert await advanced(holder) == [100_00, 0]
    decision = {"dispute_id": dispute["id"], "outcome": "WON"}
    await holder.desk.post("/api/v1/sandbox/card-dispute-decision/", decision, status=202)
    assert (await shown(holder, dispute), await advanced(holder)) == (("WON", 0, 100_00), [0, 0])
    assert 100_00 - 1_00 < await holder.desk.value(holder.pocket) - before < 100_00 + 20_00
    lost = decision | {"outcome": "LOST"}
    await holder.desk.refused(
        "POST", "/api/v1/sandbox/card-dispute-decision/", lost, status=422, code="dispute-not-possible"
    )
    await holder.simulate("representment", record_id=record)
    assert await shown(holder, dispute) == ("LOST", 0, 0)
    await holder.desk.refused("POST", DISPUTES, body, status=422, code="dispute-not-possible")
    kinds = [each for each in await holder.events() if each == "card.dispute.updated"]
    assert len(kinds) == 4
    await expect_clean(bank)


async def test_a_lost_dispute_takes_back_what_was_spent_and_the_pocket_owes_it(holder, bank):
    _, body = await bought(holder, 200_00)
    await holder.desk.later(days=4)
    dispute = await holder.desk.post(DISPUTES, body)
    await credited(holder)
    own = await holder.desk.facilitation()
    sides = {"from_account": {"id": holder.pocket.id}, "to_account": {"id": own.id}, "target": "Spent"}
    spent = {"type": "PARTNER_CUSTOMER_DEFUNDING", "amount": {"type": "FULL_WITHDRAWAL"}, **sides}
    await holder.desk.post("/api/v1/transfers/on-us/", spent)
    closing = {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"}
    await holder.desk.pocket(holder.pocket.customer)
    path = f"/api/v2/customers/{holder.pocket.customer}/pockets/{holder.pocket.id}/"
    await holder.desk.later(days=2)
    await holder.desk.refused("PATCH", path, closing, status=422, code="pocket-not-empty")
    done = await decided(bank, cli.lose, dispute)
    assert (done.outcome["status"], await advanced(holder)) == ("LOST", [0, 200_00])
    await holder.desk.refused("POST", DISPUTES, body, status=422, code="dispute-not-possible")
    await expect_clean(bank)


async def test_a_refund_repays_the_credit_and_bars_another_dispute(holder, bank):
    _, body = await bought(holder, 100_00)
    _, other = await bought(holder, 70_00)
    dispute = await holder.desk.post(DISPUTES, body)
    await credited(holder)
    await holder.simulate("refund", amount_usdc=100_00)
    assert (await shown(holder, dispute), await advanced(holder)) == (("WON", 0, 100_00), [0, 0])
    # A refund that precedes the dispute: of the whole payment, by the same merchant.
    await holder.simulate("refund", amount_usdc=70_00)
    await holder.desk.refused("POST", DISPUTES, other, status=422, code="dispute-not-possible")
    # A refund of something else, and a withdrawal of a credit that operators gave.
    _, third = await bought(holder, 50_00)
    large = await holder.desk.post(DISPUTES, third | {"amount_usdc": 40_00})
    await decided(bank, cli.credit, large)
    await holder.simulate("refund", amount_usdc=9_00)
    assert (await shown(holder, large), await advanced(holder)) == (("PROVISIONALLY_CREDITED", 40_00, 0), [40_00, 0])
    await holder.desk.post(f"{DISPUTES}{large['id']}/withdraw/", b"", status=200)
    assert (await shown(holder, large), await advanced(holder)) == (("WITHDRAWN", 0, 0), [0, 0])
    again = await holder.desk.post(DISPUTES, third)
    assert (await decided(bank, cli.win, again)).outcome["status"] == "WON"
    assert await advanced(holder) == [0, 0]
    # More than the bank's maximum, with what is credited already, waits for operators.
    large = await holder.desk.post(DISPUTES, (await bought(holder, 2_460_00))[1])
    await credited(holder)
    assert (await shown(holder, large))[0] == "OPENED"
    await expect_clean(bank)


async def test_refunds_that_name_no_purchase_are_found_by_their_merchant_and_never_paid_twice(holder, bank):
    post = holder.desk.post
    # In one batch with the dispute.
    record, _ = await bought(holder, 30_00, **at("Batch"))
    opened = OpenDispute(
        caller="test",
        key=ids.new(),
        customers=(holder.pocket.key[0],),
        references=(UUID(record), UUID(holder.card)),
        dispute_id=ids.new(),
        record_id=UUID(record),
        amount=None,
        reason=DisputeReason.FRAUD,
    )
    batch = await refunding(holder, record, 30_00), opened
    both = await asyncio.gather(*map(bank.engine.submit, batch), return_exceptions=True)
    assert getattr(both[1], "code", None) == "dispute-not-possible"
    # In parts, before and after; with a reference of the merchant's own.
    record, body = await bought(holder, 80_00, **at("Parts"))
    for reference in (None, "RETURN-1"):
        await refund(holder, record, 40_00, reference)
    await holder.desk.refused("POST", DISPUTES, body, status=422, code="dispute-not-possible")
    record, body = await bought(holder, 80_00, **at("Later"))
    await decided(bank, cli.credit, later := await post(DISPUTES, body))
    for reference in ("RETURN-2", None):
        await refund(holder, record, 40_00, reference)
    assert (await shown(holder, later), await advanced(holder)) == (("WON", 0, 80_00), [0, 0])
    # One refund of two equal purchases leaves one of them, and no automatic credit while nobody knows which.
    pair = [await bought(holder, 33_00, **at("Pair")) for _ in range(2)]
    await refund(holder, pair[0][0], 33_00, "RETURN-3")
    doubtful = await post(DISPUTES, pair[0][1])
    await holder.desk.refused("POST", DISPUTES, pair[1][1], status=422, code="dispute-not-possible")
    # Two clearings of one purchase, the other of which is refunded under its reference.
    reference = (await holder.authorize(100_00))["network_reference"]
    first, _ = await bought(holder, 60_00, network_reference=reference, is_final=False, **at("Split"))
    _, rest = await bought(holder, 40_00, network_reference=reference, **at("Split"))
    await refund(holder, first, 60_00, reference)
    split = await post(DISPUTES, rest)
    await credited(holder)
    assert (await shown(holder, doubtful))[0] == "OPENED"
    assert (await shown(holder, split), await advanced(holder)) == (("PROVISIONALLY_CREDITED", 40_00, 0), [40_00, 0])
    await expect_clean(bank)


async def test_a_final_credit_is_borne_by_the_bank_whatever_the_merchant_represents(holder, bank):
    async def losses():
        kind = "SELECT coalesce(sum(debits - credits), 0)::bigint FROM account WHERE kind = 'losses'"
        return await bank.pool.fetchval(kind)

    record, body = await bought(holder, 50_00, **at("Final"))
    final = await holder.desk.post(DISPUTES, body)
    assert (await decided(bank, cli.win, final)).outcome["status"] == "WON"
    assert (await advanced(holder), await losses()) == ([0, 0], 50_00)
    await holder.simulate("chargeback", record_id=record)
    assert (await shown(holder, final), await losses()) == (("WON", 0, 50_00), 0)
    before = await holder.desk.value(holder.pocket)
    await holder.simulate("representment", record_id=record)
    assert (await shown(holder, final), await losses()) == (("WON", 0, 0), 50_00)
    assert abs(await holder.desk.value(holder.pocket) - before) < 50
    await expect_clean(bank)


async def test_a_representment_takes_its_amount_of_what_was_charged_back(holder, bank):
    # In part: what remains recovered is won.
    record, body = await bought(holder, 100_00, **at("Part"))
    one, other = [await holder.desk.post(DISPUTES, body | {"amount_usdc": cents}) for cents in (60_00, 40_00)]
    await holder.simulate("chargeback", record_id=record)
    await holder.simulate("representment", record_id=record, amount_usdc=1_00)
    left = [await shown(holder, each) for each in (one, other)]
    assert ({each[0] for each in left}, sum(each[2] for each in left)) == ({"WON"}, 99_00)
    # A withdrawn dispute stays withdrawn.
    record, body = await bought(holder, 100_00, **at("Withdrawn"))
    gone = await holder.desk.post(DISPUTES, body)
    await holder.simulate("chargeback", record_id=record, amount_usdc=60_00)
    await holder.desk.post(f"{DISPUTES}{gone['id']}/withdraw/", b"", status=200)
    await holder.desk.post(DISPUTES, body | {"amount_usdc": 40_00})
    await holder.simulate("representment", record_id=record, amount_usdc=60_00)
    assert await shown(holder, gone) == ("WITHDRAWN", 0, 0)
    # A chargeback on top of a refund, and its representment, are not the dispute's.
    record, body = await bought(holder, 70_00, **at("Excess"))
    refunded = await holder.desk.post(DISPUTES, body)
    await refund(holder, record, 70_00)
    for operation in ("chargeback", "representment"):
        await holder.simulate(operation, record_id=record)
    assert await shown(holder, refunded) == ("WON", 0, 70_00)
    await expect_clean(bank)


async def test_what_a_customer_owes_counts_toward_the_automatic_maximum_which_is_tried_again(holder, bank):
    # What a lost credit left owed counts toward the maximum; when it is repaid, the next day credits.
    await decided(bank, cli.credit, owing := await holder.desk.post(DISPUTES, (await bought(holder, 2_000_00))[1]))
    own = await holder.desk.facilitation()
    sides = {"from_account": {"id": holder.pocket.id}, "to_account": {"id": own.id}, "target": "Spent"}
    spent = {"type": "PARTNER_CUSTOMER_DEFUNDING", "amount": {"type": "FULL_WITHDRAWAL"}, **sides}
    await holder.desk.post("/api/v1/transfers/on-us/", spent)
    await holder.desk.post(f"{DISPUTES}{owing['id']}/withdraw/", b"", status=200)
    assert (await advanced(holder))[1] > 1_900_00
    next_one = await holder.desk.post(DISPUTES, (await bought(holder, 700_00, **at("Next")))[1])
    await credited(holder)
    assert (await shown(holder, next_one))[0] == "OPENED"
    await holder.simulate("refund", amount_usdc=2_700_00, **at("Elsewhere"))
    await holder.desk.later(days=4)
    await run_jobs(bank)
    assert (await shown(holder, next_one))[0] == "PROVISIONALLY_CREDITED"
    await expect_clean(bank)
