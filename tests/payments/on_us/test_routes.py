"""On-us transfers of the Partner API: the four types, and every refusal."""

import asyncio
from dataclasses import replace

import pytest
from tests.support.world import UNKNOWN

from billfold.platform import ids

PATH = "/api/v1/transfers/on-us/"


def account(pocket):
    return {"id": pocket.id, "type": "SERVICE_ACCOUNT"}


def requested_amount(cents):
    return {"type": "REQUESTED_AMOUNT", "amount_usdc": cents}


def reallocation(origin, target, cents=100_00, **fields):
    """The body of a transfer within one customer."""
    sides = {"from_account": account(origin), "to_account": account(target)}
    return {"type": "INTERNAL_REALLOCATION", "amount": requested_amount(cents), **sides, **fields}


async def payee(world, pocket, target, of=None):
    """Link the target Pocket, of another partner if given, as a counterparty; return its id."""
    portal = await (of or world).get(f"{target.path}portals/{target.portal}/")
    made = await world.post(
        f"/api/v2/customers/{pocket.customer}/counterparties/",
        {
            "type": "on_us",
            "counterparty_name": {"type": "business", "business_name": "Northwind"},
            "account_number": portal["network_address"],
        },
    )
    return made["id"]


async def test_a_partner_funds_and_defunds_a_customer(world, customer_desks):
    own = await world.facilitation(50_000_00)
    pocket = await world.pocket()
    body = {
        "type": "PARTNER_CUSTOMER_FUNDING",
        "from_account": account(own),
        "to_account": account(pocket),
        "source": "Payroll of June",
        "amount": requested_amount(20_000_00),
        "description": "June",
        "end_to_end_identification": "E2E-1",
    }
    made = await world.post(PATH, body)
    assert (made["status"], made["reason"], made["fees"]) == ("COMPLETED", None, [])
    assert made["object_type"] == "OnUsTransfer"
    echo = made["transfer"]
    assert echo["amount"] == {"value": 20_000_00, "currency": "USD", "formatted": "$20,000.00"}
    assert echo["from_account"] == account(own)
    assert echo["to_account"] == account(pocket)
    assert (echo["type"], echo["source"]) == ("PARTNER_CUSTOMER_FUNDING", "Payroll of June")
    assert (echo["description"], echo["end_to_end_identification"]) == ("June", "E2E-1")
    assert await world.get(f"{PATH}{made['id']}/") == made
    assert 19_990_00 < await world.value(pocket) <= 20_000_00
    back = {
        "type": "PARTNER_CUSTOMER_DEFUNDING",
        "from_account": account(pocket),
        "to_account": account(own),
        "target": "Refund",
        "amount": {"type": "FULL_WITHDRAWAL"},
    }
    made = await world.post(PATH, back)
    assert made["status"] == "COMPLETED"
    assert made["transfer"]["amount"]["value"] > 19_980_00
    assert await world.value(pocket) == 0
    # The customer, who pays, is not told the Pocket of somebody else.
    seen = await (await customer_desks(pocket.customer)).get(f"{PATH}{made['id']}/")
    assert seen["transfer"] == made["transfer"] | {"to_account": None}


async def test_the_deprecated_amount_field_and_the_default_transfer_type_are_accepted(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    body = reallocation(pocket, other, amount=None, amount_usdc=4_000_00)
    told = (await world.post(PATH, body))["transfer"]
    assert (told["amount"]["value"], told["transfer_type"]) == (4_000_00, "BANK_TRANSFER")
    assert "amount_usdc" not in told


async def test_a_customer_pays_a_customer_of_a_different_partner_through_a_counterparty(world, other_partner):
    pocket, target = await world.funded(10_000_00), await other_partner.pocket()
    counterparty = await payee(other_partner, target, target)
    linked = await payee(world, pocket, target, of=other_partner)
    body = {
        "type": "PEER_TO_PEER",
        "from_account": account(pocket),
        "amount": requested_amount(1_234_56),
        "counterparty_id": linked,
        "description": "thanks",
    }
    made = await world.post(PATH, body)
    assert made["status"] == "COMPLETED"
    assert 1_200_00 < await other_partner.value(target) <= 1_234_56
    (received,) = (await other_partner.get(f"{target.path}transactions/"))["items"]
    assert (received["type"], received["direction"]) == ("ON_US", "CREDIT")
    assert received["on_us_transfer_id"] == made["id"]
    # The other partner's customer received it; the transfer itself stays the payer's.
    await other_partner.refused("GET", f"{PATH}{made['id']}/", status=404, code="not-found")
    await world.refused("POST", PATH, body | {"counterparty_id": counterparty}, status=404, code="not-found")
    path = f"/api/v2/customers/{pocket.customer}/counterparties/{linked}/"
    await world.patch(path, {"status": "UNLINKED"})
    await world.refused("POST", PATH, body, status=422, code="counterparty-not-verified")


async def test_a_payment_to_a_closed_portal_is_rejected_and_to_an_open_one_of_the_pocket_completed(world):
    pocket, target = await world.funded(10_000_00), await world.pocket()
    linked = await payee(world, pocket, target)
    await world.post(f"{target.path}portals/", {"name": "Another", "payment_rails": ["ON_US"]})
    path = f"{target.path}portals/{target.portal}/funding-instructions/"
    assert (await world.get(path))["status"] == "OPEN"
    await world.ask("POST", f"/api/v1/service-accounts/{target.id}/portals/{target.portal}/close/", b"{}", status=204)
    shown = await world.get(path)
    assert (shown["status"], shown["instructions"]) == ("CLOSED", [])
    body = {"type": "PEER_TO_PEER", "from_account": account(pocket), "counterparty_id": linked}
    for fields in ({"amount": requested_amount(1_00)}, {"amount": requested_amount(1_00), "async_mode": True}):
        made = await world.post(PATH, body | fields)
        await world.bank.background.close()
        made = await world.get(f"{PATH}{made['id']}/")
        assert (made["status"], made["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    (other,) = [each for each in (await world.get(f"{target.path}portals/"))["items"] if each["status"] == "OPEN"]
    again = await payee(world, pocket, replace(target, portal=other["id"]))
    made = await world.post(PATH, body | {"counterparty_id": again, "amount": requested_amount(1_00)})
    assert made["status"] == "COMPLETED"


@pytest.mark.parametrize("kind", ["BANK_TRANSFER", "SECURITY_TRANSFER"])
async def test_a_transfer_without_sufficient_funds_is_rejected_and_books_nothing(world, kind):
    pocket = await world.funded(1_000_00)
    other = await world.pocket(pocket.customer)
    before, value = await world.counts(), await world.value(pocket)
    made = await world.transfer(pocket, other, 1_000_01 + 99, status="REJECTED", transfer_type=kind)
    assert made["reason"] == "INSUFFICIENT_FUNDS"
    after = await world.counts()
    assert after == before | {"transfer": before["transfer"] + 1}
    assert await world.value(pocket) == value
    assert await world.get(f"{PATH}{made['id']}/") == made
    empty = await world.transfer(other, pocket, None, status="REJECTED", transfer_type=kind)
    assert empty["reason"] == "INSUFFICIENT_FUNDS"
    assert empty["transfer"]["amount"] is None


async def test_on_us_transfers_ignore_the_sandbox_cents_that_trigger_rejections(world):
    pocket = await world.funded(1_000_00)
    other = await world.pocket(pocket.customer)
    for cents in (100_01, 100_02, 100_03, 100_04):
        await world.transfer(pocket, other, cents)


FUNDING = {"type": "PARTNER_CUSTOMER_FUNDING", "source": "us"}
PEER = {"type": "PEER_TO_PEER", "to_account": None, "counterparty_id": UNKNOWN}
REMOVED = object()


async def test_a_malformed_transfer_is_refused_before_it_is_booked(world):
    unknown = {"id": UNKNOWN, "type": "SERVICE_ACCOUNT"}
    for change, loc in [
        ({"amount": requested_amount(True)}, "body.amount.amount_usdc"),
        ({"amount": {"type": "FULL_WITHDRAWAL", "amount_usdc": 1}}, "body.amount.amount_usdc"),
        ({"amount": REMOVED}, "body.amount"),
        ({"amount_usdc": 100}, "body.amount"),
        ({"amount": REMOVED, "amount_usdc": 0}, "body.amount_usdc"),
        ({"to_account": REMOVED}, "body.to_account"),
        ({"counterparty_id": UNKNOWN}, "body.counterparty_id"),
        ({"source": "us"}, "body.source"),
        ({"target": "them"}, "body.target"),
        (FUNDING | {"source": REMOVED}, "body.source"),
        (FUNDING | {"amount": {"type": "FULL_WITHDRAWAL"}}, "body.amount"),
        ({"type": "PARTNER_CUSTOMER_DEFUNDING"}, "body.target"),
        (PEER | {"counterparty_id": REMOVED, "to_account": REMOVED}, "body.counterparty_id"),
    ]:
        body = {
            "type": "INTERNAL_REALLOCATION",
            "amount": requested_amount(100_00),
            "from_account": unknown,
            "to_account": unknown,
        }
        body |= change
        body = {name: value for name, value in body.items() if value is not REMOVED}
        await world.invalid("POST", PATH, body, loc=loc)
        assert (await world.counts())["transfer"] == 0


async def test_a_transfer_is_refused_if_the_pocket_owners_do_not_match_its_type(world):
    own, second_own = await world.facilitation(10_000_00), await world.facilitation()
    pocket, other = await world.funded(10_000_00), await world.pocket()
    before = await world.counts()
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
        body = reallocation(origin, target) | {"type": kind, **fields}
        await world.refused("POST", PATH, body, status=422, code="transfer-type-not-allowed")
    await world.refused("POST", PATH, reallocation(pocket, pocket), status=422, code="same-pocket")
    assert await world.counts() == before


async def test_transfers_with_pockets_of_a_different_partner_are_not_found(world, other_partner):
    mine, theirs = await world.funded(10_000_00), await other_partner.funded(10_000_00)
    before = await world.counts()
    for wrong in ("from_account", "to_account"):
        sides = {"from_account": account(mine), "to_account": account(mine), wrong: account(theirs)}
        body = {"type": "INTERNAL_REALLOCATION", "amount": requested_amount(100_00), **sides}
        problem = await world.refused("POST", PATH, body, status=404, code="not-found")
        assert problem["detail"].endswith(f"Look at {wrong}.")
    assert await world.counts() == before


async def test_frozen_and_closed_pockets_cannot_pay(world):
    pocket = await world.funded(10_000_00)
    other, gone = (await world.pocket(pocket.customer), await world.pocket(pocket.customer))
    await world.patch(
        f"/api/v2/customers/{gone.customer}/pockets/{gone.id}/", {"status": "CLOSED", "closure_reason": "INACTIVITY"}
    )
    body = reallocation(pocket, gone)
    await world.refused("POST", PATH, body, status=409, code="pocket-not-open")
    back = body | {"from_account": account(gone), "to_account": account(pocket)}
    await world.refused("POST", PATH, back, status=409, code="pocket-not-open")
    await world.post(f"/api/v1/sandbox/pockets/{pocket.id}/", {"status": "FROZEN"}, 200)
    before = await world.counts()
    out = body | {"to_account": account(other)}
    await world.refused("POST", PATH, out, status=409, code="pocket-frozen")
    await world.refused("POST", PATH, out | {"async_mode": True}, status=409, code="pocket-frozen")
    assert await world.counts() == before


async def test_concurrent_transfers_with_the_same_id_create_one_transfer(world, other_partner):
    bodies = []
    for side in (world, other_partner):
        pocket = await side.funded(10_000_00)
        other = await side.pocket(pocket.customer)
        bodies.append((side, pocket, other))
    mine = str(ids.new())

    async def send(side, origin, target, cents):
        body = reallocation(origin, target, cents, transfer_id=mine)
        return await side.client.post(PATH, body)

    answers = await asyncio.gather(*(send(*side, cents) for side in bodies for cents in (100_00, 200_00)))
    statuses = sorted(each.status_code for each in answers)
    assert statuses == [201, 409, 409, 409], [each.text for each in answers]
    refused = [each.json()["code"] for each in answers if each.status_code == 409]
    assert set(refused) == {"duplicate-id"}
    assert (await world.counts())["transfer"] == 1
    (made,) = [each.json() for each in answers if each.status_code == 201]
    assert made["id"] == mine


@pytest.mark.parametrize("cents", [100_00, 6_000_00], ids=["affordable often", "affordable once"])
async def test_concurrent_requests_with_one_transfer_id_create_one_transfer_and_return_the_same_response(world, cents):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    body = reallocation(pocket, other, cents, transfer_id=str(ids.new()))
    spelled = {name: value for name, value in body.items() if name != "amount"} | {"amount_usdc": cents}
    spelled |= {"transfer_type": "BANK_TRANSFER", "description": None}
    answers = await asyncio.gather(*(world.client.post(PATH, (body, spelled)[nth % 2]) for nth in range(20)))
    assert [each.status_code for each in answers] == [201] * 20
    (made,) = {each.text for each in answers}
    assert (await world.client.post(PATH, spelled)).text == made
    assert (await world.counts())["transfer"] == 1


async def wait_for_transfer(world, transfer_id):
    """Wait until a transfer is no longer pending."""
    for _ in range(100):
        shown = await world.get(f"{PATH}{transfer_id}/")
        if shown["status"] != "PENDING":
            return shown
        await asyncio.sleep(0.02)
    raise AssertionError("still pending")


async def test_an_async_transfer_is_accepted_first_and_executed_later(world):
    pocket = await world.funded(10_000_00)
    other = await world.pocket(pocket.customer)
    made = await world.transfer(pocket, other, 1_000_00, status="PENDING", async_mode=True)
    assert made["reason"] is None
    shown = await wait_for_transfer(world, made["id"])
    assert (shown["status"], shown["reason"]) == ("COMPLETED", None)
    assert await world.value(other) > 990_00
    rejected = await world.transfer(pocket, other, 90_000_00, status="PENDING", async_mode=True)
    shown = await wait_for_transfer(world, rejected["id"])
    assert (shown["status"], shown["reason"]) == ("REJECTED", "INSUFFICIENT_FUNDS")
    everything = await world.transfer(pocket, other, None, status="PENDING", async_mode=True)
    assert everything["transfer"]["amount"] is None
    shown = await wait_for_transfer(world, everything["id"])
    assert shown["status"] == "COMPLETED"
    assert shown["transfer"]["amount"]["value"] > 8_900_00
    assert await world.value(pocket) == 0
