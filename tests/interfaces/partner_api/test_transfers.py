"""On-us transfers over HTTP: the four ways money moves, and every way it is refused."""

import asyncio
from uuid import UUID

import pytest
from tests.interfaces.partner_api.desk import UNKNOWN

from billfold.domain import transfers
from billfold.engine.pending import carry_out_pending
from billfold.flows.transfer_commands import TransferOnUs
from billfold.kit import ids

PATH = "/api/v1/transfers/on-us/"


def account(pocket):
    return {"id": pocket.id, "type": "SERVICE_ACCOUNT"}


def asked(cents):
    return {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}


async def payee(desk, pocket, target):
    """Link the target Pocket as the pocket's customer's counterparty; return its id."""
    portal = await desk.get(f"{target.path}portals/{target.portal}/")
    made = await desk.post(
        f"/api/v2/customers/{pocket.customer}/counterparties/",
        {
            "type": "on_us",
            "counterparty_name": {"type": "business", "business_name": "Target"},
            "account_number": portal["network_address"],
        },
    )
    return made["id"]


async def test_a_partner_funds_a_customer_and_takes_money_back(desk):
    own = await desk.facilitation(50_000_00)
    pocket = await desk.pocket()
    body = {
        "type": "PARTNER_CUSTOMER_FUNDING", "from_account": account(own),
        "to_account": account(pocket), "source": "Payroll of June", "amount": asked(20_000_00),
        "description": "June", "end_to_end_identification": "E2E-1",
    }  # fmt: skip
    made = await desk.post(PATH, body)
    assert (made["status"], made["reason"], made["fees"]) == ("COMPLETED", None, [])
    assert made["object_type"] == "OnUsTransfer"
    echo = made["transfer"]
    assert echo["amount"] == {"value": 20_000_00, "currency": "USD", "formatted": "$20,000.00"}
    assert echo["from_account"] == account(own)
    assert echo["to_account"] == account(pocket)
    assert (echo["type"], echo["source"]) == ("PARTNER_CUSTOMER_FUNDING", "Payroll of June")
    assert (echo["description"], echo["end_to_end_identification"]) == ("June", "E2E-1")
    assert await desk.get(f"{PATH}{made['id']}/") == made
    assert 19_990_00 < await desk.value(pocket) <= 20_000_00
    back = {
        "type": "PARTNER_CUSTOMER_DEFUNDING", "from_account": account(pocket),
        "to_account": account(own), "target": "Refund", "amount": {"type": "FULL_WITHDRAWAL"},
    }  # fmt: skip
    made = await desk.post(PATH, back)
    assert made["status"] == "COMPLETED"
    assert made["transfer"]["amount"]["value"] > 19_980_00
    assert await desk.value(pocket) == 0


async def test_the_older_spelling_of_the_amount_and_the_usual_type_are_taken(desk):
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    body = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(other), "amount_usdc": 4_000_00,
    }  # fmt: skip
    told = (await desk.post(PATH, body))["transfer"]
    assert (told["amount"]["value"], told["transfer_type"]) == (4_000_00, "BANK_TRANSFER")
    assert "amount_usdc" not in told


async def test_bills_move_as_they_are_when_that_is_asked_for(desk):
    pocket = await desk.funded(100_000_00)
    other = await desk.pocket(pocket.customer, weeks=26)
    before = (await desk.get(pocket.path))["portfolio"]["securities"][0]
    value = await desk.value(pocket)
    made = await desk.transfer(pocket, other, 40_000_00, transfer_type="SECURITY_TRANSFER")
    moved = (await desk.get(other.path))["portfolio"]["securities"]
    assert [each["cusip"] for each in moved] == [before["cusip"]]
    assert moved[0]["market_value"]["value"] == made["transfer"]["amount"]["value"] >= 40_000_00
    assert abs(await desk.value(pocket) + await desk.value(other) - value) <= 1
    (there,) = (await desk.get(f"{other.path}trades/"))["items"]
    (_, here) = (await desk.get(f"{pocket.path}trades/", {"order": "asc"}))["items"]
    for trade, direction, counter in ((there, "IN", pocket), (here, "OUT", other)):
        assert trade["activity"] == "SAME_ENTITY_SECURITY_TRANSFER"
        assert (trade["direction"], trade["counter_pocket_id"]) == (direction, counter.id)
        assert trade["on_us_transfer_id"] == made["id"]
        assert trade["quantity"] == moved[0]["quantity"]


async def test_a_customer_pays_another_through_a_counterparty(desk, stranger):
    pocket, target = await desk.funded(10_000_00), await stranger.pocket()
    counterparty = await payee(stranger, target, target)
    linked = await desk.post(
        f"/api/v2/customers/{pocket.customer}/counterparties/",
        {
            "type": "on_us",
            "counterparty_name": {
                "type": "individual", "first_name": "Ada", "last_name": "Stone",
            },
            "account_number": (await stranger.get(f"{target.path}portals/{target.portal}/"))[
                "network_address"
            ],
        },
    )  # fmt: skip
    body = {
        "type": "PEER_TO_PEER", "from_account": account(pocket), "amount": asked(1_234_56),
        "counterparty_id": linked["id"], "description": "thanks",
    }  # fmt: skip
    made = await desk.post(PATH, body)
    assert made["status"] == "COMPLETED"
    assert 1_200_00 < await stranger.value(target) <= 1_234_56
    (received,) = (await stranger.get(f"{target.path}transactions/"))["items"]
    assert (received["type"], received["direction"]) == ("ON_US", "CREDIT")
    assert received["on_us_transfer_id"] == made["id"]
    # The other partner's customer received it; the transfer itself stays the payer's.
    await stranger.refused("GET", f"{PATH}{made['id']}/", status=404, code="not-found")
    await desk.refused(
        "POST", PATH, body | {"counterparty_id": counterparty}, status=404, code="not-found"
    )
    path = f"/api/v2/customers/{pocket.customer}/counterparties/{linked['id']}/"
    await desk.patch(path, {"status": "UNLINKED"})
    await desk.refused("POST", PATH, body, status=422, code="counterparty-not-verified")


async def test_nothing_is_booked_when_there_is_too_little(desk):
    pocket = await desk.funded(1_000_00)
    other = await desk.pocket(pocket.customer)
    before, value = await desk.counts(), await desk.value(pocket)
    made = await desk.transfer(pocket, other, 1_000_01 + 99, status="REJECTED")
    assert made["reason"] == "INSUFFICIENT_FUNDS"
    after = await desk.counts()
    assert after == before | {"transfer": before["transfer"] + 1}
    assert await desk.value(pocket) == value
    assert await desk.get(f"{PATH}{made['id']}/") == made
    empty = await desk.transfer(other, pocket, None, status="REJECTED")
    assert empty["reason"] == "INSUFFICIENT_FUNDS"
    assert empty["transfer"]["amount"] is None


async def test_nothing_is_booked_when_bills_in_kind_do_not_reach(desk):
    pocket = await desk.funded(1_000_00)
    other = await desk.pocket(pocket.customer)
    before = await desk.counts()
    for cents in (5_000_00, None):
        origin = pocket if cents else other
        target = other if cents else pocket
        made = await desk.transfer(
            origin, target, cents, status="REJECTED", transfer_type="SECURITY_TRANSFER"
        )
        assert made["reason"] == "INSUFFICIENT_FUNDS"
    assert await desk.counts() == before | {"transfer": before["transfer"] + 2}


@pytest.mark.parametrize(
    ("cents", "reason"), [(100_01, "ACCOUNT_UNAVAILABLE"), (100_02, "SANCTION_SCREEN_FAILED")]
)
async def test_the_sandbox_rejects_amounts_with_a_magic_end(desk, cents, reason):
    pocket = await desk.funded(1_000_00)
    other = await desk.pocket(pocket.customer)
    made = await desk.transfer(pocket, other, cents, status="REJECTED")
    assert made["reason"] == reason


FUNDING = {"type": "PARTNER_CUSTOMER_FUNDING", "source": "us"}
PEER = {"type": "PEER_TO_PEER", "to_account": None, "counterparty_id": UNKNOWN}
REMOVED = object()


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"amount": asked(0)}, "body.amount.amount_usdc"),
        ({"amount": asked(-1)}, "body.amount.amount_usdc"),
        ({"amount": asked(10**12)}, "body.amount.amount_usdc"),
        ({"amount": asked(1.5)}, "body.amount.amount_usdc"),
        ({"amount": asked("100")}, "body.amount.amount_usdc"),
        ({"amount": asked(True)}, "body.amount.amount_usdc"),
        ({"amount": {"type": "ALL"}}, "body.amount.type"),
        ({"amount": {"type": "FULL_WITHDRAWAL", "amount_usdc": 1}}, "body.amount.amount_usdc"),
        ({"amount": REMOVED}, "body.amount"),
        ({"amount_usdc": 100}, "body.amount"),
        ({"amount": REMOVED, "amount_usdc": 0}, "body.amount_usdc"),
        ({"amount": REMOVED, "amount_usdc": 10**30}, "body.amount_usdc"),
        ({"description": "x" * 101}, "body.description"),
        ({"end_to_end_identification": "x" * 36}, "body.end_to_end_identification"),
        ({"to_account": REMOVED}, "body.to_account"),
        ({"from_account": REMOVED}, "body.from_account"),
        ({"from_account": {"id": "me", "type": "SERVICE_ACCOUNT"}}, "body.from_account.id"),
        ({"from_account": {"id": UNKNOWN, "type": "CARD"}}, "body.from_account.type"),
        ({"transfer_id": "mine"}, "body.transfer_id"),
        ({"transfer_type": "BARTER"}, "body.transfer_type"),
        ({"counterparty_id": UNKNOWN}, "body.counterparty_id"),
        ({"source": "us"}, "body.source"),
        ({"target": "them"}, "body.target"),
        (FUNDING | {"source": REMOVED}, "body.source"),
        (FUNDING | {"source": "x" * 201}, "body.source"),
        (FUNDING | {"source": ""}, "body.source"),
        (FUNDING | {"transfer_type": "BANK_TRANSFER"}, "body.transfer_type"),
        (FUNDING | {"amount": {"type": "FULL_WITHDRAWAL"}}, "body.amount"),
        ({"type": "PARTNER_CUSTOMER_DEFUNDING"}, "body.target"),
        (PEER | {"counterparty_id": REMOVED, "to_account": REMOVED}, "body.counterparty_id"),
        ({"type": "GIFT"}, "body.type"),
        ({"async_mode": "yes"}, "body.async_mode"),
        ({"colour": "red"}, "body.colour"),
    ],
)
async def test_a_transfer_is_refused_at_the_door_when_it_is_malformed(desk, change, loc):
    body = {
        "type": "INTERNAL_REALLOCATION",
        "from_account": {"id": UNKNOWN, "type": "SERVICE_ACCOUNT"},
        "to_account": {"id": UNKNOWN, "type": "SERVICE_ACCOUNT"},
        "amount": asked(100_00),
    } | change
    body = {name: value for name, value in body.items() if value is not REMOVED}
    await desk.invalid("POST", PATH, body, loc=loc)
    assert (await desk.counts())["transfer"] == 0


async def test_a_transfer_is_refused_when_its_sides_are_not_whose_its_type_says(desk):
    own, second_own = await desk.facilitation(10_000_00), await desk.facilitation()
    pocket, other = await desk.funded(10_000_00), await desk.pocket()
    before = await desk.counts()
    sides = [
        ("INTERNAL_REALLOCATION", {}, pocket, other),
        ("INTERNAL_REALLOCATION", {}, own, pocket),
        ("PARTNER_CUSTOMER_FUNDING", {"source": "us"}, pocket, other),
        ("PARTNER_CUSTOMER_FUNDING", {"source": "us"}, pocket, own),
        ("PARTNER_CUSTOMER_FUNDING", {"source": "us"}, own, second_own),
        ("PARTNER_CUSTOMER_DEFUNDING", {"target": "us"}, own, pocket),
        ("PARTNER_CUSTOMER_DEFUNDING", {"target": "us"}, pocket, other),
    ]
    for kind, fields, origin, target in sides:
        body = {
            "type": kind, "from_account": account(origin), "to_account": account(target),
            "amount": asked(100_00), **fields,
        }  # fmt: skip
        await desk.refused("POST", PATH, body, status=422, code="transfer-type-not-allowed")
    same = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(pocket), "amount": asked(100_00),
    }  # fmt: skip
    await desk.refused("POST", PATH, same, status=422, code="same-pocket")
    assert await desk.counts() == before


async def test_money_of_others_cannot_be_moved_or_reached(desk, stranger):
    mine, theirs = await desk.funded(10_000_00), await stranger.funded(10_000_00)
    before = await desk.counts()
    for wrong in ("from_account", "to_account"):
        sides = {"from_account": account(mine), "to_account": account(mine), wrong: account(theirs)}
        body = {"type": "INTERNAL_REALLOCATION", "amount": asked(100_00), **sides}
        problem = await desk.refused("POST", PATH, body, status=404, code="not-found")
        assert problem["detail"].endswith(f"Look at {wrong}.")
    assert await desk.counts() == before


async def test_frozen_and_closed_pockets_pay_nobody(desk):
    pocket = await desk.funded(10_000_00)
    other, gone = await desk.pocket(pocket.customer), await desk.pocket(pocket.customer)
    await desk.patch(
        f"/api/v2/customers/{gone.customer}/pockets/{gone.id}/",
        {"status": "CLOSED", "closure_reason": "INACTIVITY"},
    )
    body = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(gone), "amount": asked(100_00),
    }  # fmt: skip
    await desk.refused("POST", PATH, body, status=409, code="pocket-not-open")
    back = body | {"from_account": account(gone), "to_account": account(pocket)}
    await desk.refused("POST", PATH, back, status=409, code="pocket-not-open")
    await desk.post(f"/api/v1/sandbox/pockets/{pocket.id}/", {"status": "FROZEN"}, 200)
    before = await desk.counts()
    out = body | {"to_account": account(other)}
    await desk.refused("POST", PATH, out, status=409, code="pocket-frozen")
    await desk.refused("POST", PATH, out | {"async_mode": True}, status=409, code="pocket-frozen")
    assert await desk.counts() == before


async def test_a_transfer_id_of_the_callers_own_is_kept_and_names_one_transfer(desk, stranger):
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    mine = str(ids.new())
    made = await desk.transfer(pocket, other, 100_00, transfer_id=mine)
    assert made["id"] == mine
    before = await desk.counts()
    again = await desk.transfer(pocket, other, 100_00, transfer_id=mine)
    assert again == made
    body = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(other), "amount": asked(200_00), "transfer_id": mine,
    }  # fmt: skip
    await desk.refused("POST", PATH, body, status=409, code="duplicate-id")
    theirs = await stranger.funded(10_000_00)
    theirs_too = await stranger.pocket(theirs.customer)
    foreign = body | {"from_account": account(theirs), "to_account": account(theirs_too)}
    await stranger.refused("POST", PATH, foreign, status=409, code="duplicate-id")
    assert (await desk.counts())["transfer"] == before["transfer"]


async def test_one_of_two_wins_when_the_same_transfer_id_arrives_twice_at_once(desk, stranger):
    bodies = []
    for side in (desk, stranger):
        pocket = await side.funded(10_000_00)
        other = await side.pocket(pocket.customer)
        bodies.append((side, pocket, other))
    mine = str(ids.new())

    async def send(side, origin, target, cents):
        body = {
            "type": "INTERNAL_REALLOCATION", "from_account": account(origin),
            "to_account": account(target), "amount": asked(cents), "transfer_id": mine,
        }  # fmt: skip
        return await side.client.post(PATH, body)

    answers = await asyncio.gather(
        *(send(*side, cents) for side in bodies for cents in (100_00, 200_00))
    )
    statuses = sorted(each.status_code for each in answers)
    assert statuses == [201, 409, 409, 409], [each.text for each in answers]
    refused = [each.json()["code"] for each in answers if each.status_code == 409]
    assert set(refused) == {"duplicate-id"}
    assert (await desk.counts())["transfer"] == 1


async def done(desk, transfer_id):
    """Wait until a transfer is no longer pending."""
    for _ in range(100):
        shown = await desk.get(f"{PATH}{transfer_id}/")
        if shown["status"] != "PENDING":
            return shown
        await asyncio.sleep(0.02)
    raise AssertionError("still pending")


async def test_a_transfer_is_accepted_first_and_carried_out_when_it_may_take_its_time(desk):
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    made = await desk.transfer(pocket, other, 1_000_00, status="PENDING", async_mode=True)
    assert made["reason"] is None
    shown = await done(desk, made["id"])
    assert (shown["status"], shown["reason"]) == ("COMPLETED", None)
    assert await desk.value(other) > 990_00
    rejected = await desk.transfer(pocket, other, 90_000_00, status="PENDING", async_mode=True)
    shown = await done(desk, rejected["id"])
    assert (shown["status"], shown["reason"]) == ("REJECTED", "INSUFFICIENT_FUNDS")
    everything = await desk.transfer(pocket, other, None, status="PENDING", async_mode=True)
    assert everything["transfer"]["amount"] is None
    shown = await done(desk, everything["id"])
    assert shown["status"] == "COMPLETED"
    assert shown["transfer"]["amount"]["value"] > 8_900_00
    assert await desk.value(pocket) == 0


async def test_what_was_accepted_is_carried_out_by_a_worker_when_the_door_is_gone(desk):
    pocket, target = await desk.funded(10_000_00), await desk.pocket()
    counterparty = await payee(desk, pocket, target)
    body = {
        "type": "PEER_TO_PEER", "from_account": {"id": pocket.id}, "amount": asked(700_00),
        "counterparty_id": counterparty, "async_mode": True, "description": "late",
        "end_to_end_identification": "E2E-9",
    }  # fmt: skip
    made = await desk.post(PATH, body)
    row = await transfers.get_transfer(desk.bank.pool, UUID(pocket.customer), UUID(made["id"]))
    assert row.payee_id == UUID(target.customer)
    assert row.order.description == "late"
    await carry_out_pending(desk.bank)
    await carry_out_pending(desk.bank)
    assert (await done(desk, made["id"]))["status"] == "COMPLETED"
    (received,) = (await desk.get(f"{target.path}transactions/"))["items"]
    assert (received["amount"]["value"], received["description"]) == (700_00, "late")
    assert received["end_to_end_identification"] == "E2E-9"
    assert received["counterparty"]["pocket_id"] == pocket.id
    assert await transfers.list_pending(desk.bank.pool) == []


async def test_a_pocket_is_not_closed_while_a_transfer_of_it_waits(desk):
    pocket = await desk.funded(10_000_00)
    other, empty = await desk.pocket(pocket.customer), await desk.pocket(pocket.customer)
    waiting = TransferOnUs(
        caller="test", key=ids.new(), customers=(UUID(pocket.customer),), transfer_id=None,
        type="INTERNAL_REALLOCATION", from_pocket_id=UUID(other.id), to_pocket_id=UUID(empty.id),
        amount=100_00, partner_id=desk.partner.partner_id, later=True,
    )  # fmt: skip
    await desk.bank.engine.submit(waiting)
    path = f"/api/v2/customers/{empty.customer}/pockets/{empty.id}/"
    closing = {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    await desk.refused("PATCH", path, closing, status=422, code="pocket-not-empty")


async def test_money_moves_once_when_the_request_is_sent_again_under_its_key(desk):
    pocket = await desk.funded(10_000_00)
    other = await desk.pocket(pocket.customer)
    body = {
        "type": "INTERNAL_REALLOCATION", "from_account": account(pocket),
        "to_account": account(other), "amount": asked(100_00),
    }  # fmt: skip
    key = ids.new()
    answers = await asyncio.gather(*(desk.client.post(PATH, body, key=key) for _ in range(5)))
    made = {each.json()["id"] for each in answers if each.status_code == 201}
    assert len(made) == 1
    others = [each.json()["code"] for each in answers if each.status_code != 201]
    assert set(others) <= {"idempotency-in-progress"}
    assert (await desk.counts())["transfer"] == 1
    await desk.refused(
        "POST", PATH, body | {"description": "other"}, key=key, status=422,
        code="idempotency-key-reused",
    )  # fmt: skip


async def test_an_unknown_transfer_is_not_there(desk):
    await desk.refused("GET", f"{PATH}{UNKNOWN}/", status=404, code="not-found")
    await desk.invalid("GET", f"{PATH}mine/", loc="path.transfer_id")
