"""Previews of transfers: nothing is written, and the transfer at the same moment equals the preview to the cent."""

import random
from uuid import UUID

from msgspec.structs import replace
from tests.support.approvals import REQUESTS, counterparty, decide, on_us, wire, wire_counterparty

from billfold.accounts.customers import cli

PREVIEW = f"{REQUESTS}preview/"
FULL = {"type": "FULL_WITHDRAWAL"}
LEFT = ("cash", "total_value", "liquidation_value_t0", "liquidation_value_t1")


async def trades_of(customer_desk, pocket, before):
    """Return the trades of a Pocket that are newer than the given ones."""
    found = (await customer_desk.get("/api/v2/trades/", {"pocket_id[]": pocket.id}))["items"]
    return [each for each in found if each["id"] not in before]


def figures(sale):
    """Return the fields that a trade and its preview share."""
    worth = sale.get("proceeds") or sale.get("notional") or sale["market_value"]
    price = sale["price"] if sale["activity"] == "SELL" else ""
    return sale["activity"], sale["cusip"], sale["quantity"], price, worth["value"]


async def test_a_transfer_preview_equals_the_execution_to_the_cent(
    customer_desk, customer_desks, manager, world, payroll_pocket
):
    engine = customer_desk.bank.engine
    engine.terms = replace(engine.terms, wire_fee_cents=15_00, haircut_bps=3)
    draw = random.Random(18)
    payee = await counterparty(world, customer_desk.team.customer, await world.pocket())
    account = await wire_counterparty(customer_desk)
    for _ in range(3):
        pocket = await customer_desk.pocket(weeks=draw.choice((4, 13, 26)))
        for _ in range(draw.randint(1, 3)):
            await world.wire(pocket, draw.randint(500_00, 9_000_00))
            await world.days(draw.choice((0, 1, 6)))
        for kind in draw.sample(KINDS, 3):
            cents = draw.choice((1, draw.randint(1, 20_00), draw.randint(1, 600_00)))
            body = order(kind, pocket, cents, other=payroll_pocket, payee=payee, account=account)
            # One creation a second is allowed to each member.
            member = await customer_desks(customer_desk.team.customer)
            await _check(member, manager, pocket, body)


KINDS = ("PEER", "MONEY", "BILLS", "WIRE", "ALL_BY_WIRE")


def order(kind, pocket, cents, *, other, payee, account):
    """Return the body of a transfer request of a kind."""
    if kind == "PEER":
        return on_us(pocket, cents, counterparty=payee)
    if "WIRE" in kind:
        return wire(pocket, cents, account, **({} if kind == "WIRE" else {"amount": FULL}))
    body = on_us(pocket, cents, to=other)
    body["transfer"]["details"]["transfer_type"] = "SECURITY_TRANSFER" if kind == "BILLS" else "BANK_TRANSFER"
    return body


async def _check(member, manager, pocket, body):
    """Preview a transfer, request it, have it approved, and compare."""
    before = [each["id"] for each in await trades_of(member, pocket, ())]
    answer = await member.send("POST", PREVIEW, body)
    seen = answer.json()
    if answer.status_code != 200:
        assert seen["code"] == "insufficient-funds"
        return
    made = await member.post(REQUESTS, body)
    done = (await decide(manager, made))["transfer"]
    assert done["execution_status"] in {"COMPLETED", "PROCESSING"}
    sold = await trades_of(member, pocket, before)
    assert sorted(map(figures, sold)) == sorted(map(figures, seen["sales"]))
    portfolio = (await member.get(f"/api/v2/pockets/{pocket.id}/"))["portfolio"]
    assert {name: portfolio[name] for name in LEFT} == seen["remaining"]
    booked = [await member.get(f"/api/v2/transactions/{each}/") for each in done["transaction_ids"]]
    paid = [each for each in booked if each["pocket_id"] == pocket.id and each["type"] != "FEE"]
    assert [each["amount"] for each in paid] == [seen["amount"]] * len(paid)
    wire_fees = [each["amount"] for each in seen["fees"] if each["type"] == "WIRE_FEE"]
    assert wire_fees == [each["amount"] for each in done["fees"]]
    gains = await member.bank.pool.fetchrow(_GAINS, [each["id"] for each in sold])
    assert tuple(gains) == (seen["earnings"]["value"], sum(each["tax_basis"]["value"] for each in seen["sales"]))


_GAINS = """
SELECT coalesce(sum(notional - earnings_basis), 0), coalesce(sum(tax_basis), 0)
  FROM trade WHERE trade_id = ANY($1::text[]::uuid[])
"""
_WRITTEN = (
    "SELECT (SELECT count(*) FROM command), (SELECT count(*) FROM transfer_request), (SELECT count(*) FROM event)"
)


async def check_runs(initiator, body):
    """Check the first runs of a monthly series that a Pocket with money for two pays."""
    schedule = {"start_on": "2025-06-14", "rule": "FREQ=MONTHLY;BYMONTHDAY=14", "on_closed_day": "AFTER"}
    runs = (await initiator.ask("POST", PREVIEW, {**body, "schedule": schedule}, status=200)).json()["runs"]
    assert [(each["run_on"], each["pays_on"]) for each in runs][:2] == [
        ("2025-06-14", "2025-06-16"),
        ("2025-07-14", "2025-07-14"),
    ]
    paid = [(each["amount"]["value"], each["refusal_code"]) for each in runs]
    assert paid == [(4_000_00, None)] * 2 + [(0, "insufficient-funds")] * 4
    too_much = {
        **body,
        "transfer": body["transfer"] | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 9_900_00}},
    }
    shown = (await initiator.ask("POST", PREVIEW, {**too_much, "schedule": schedule}, status=200)).json()
    assert (shown["rejection_reason"], shown["runs"][0]["refusal_code"]) == ("INSUFFICIENT_FUNDS", "insufficient-funds")
    left = [each["remaining"]["total_value"]["value"] for each in runs[:2]]
    assert left[0] - left[1] in range(3_999_00, 4_001_00)


async def test_a_preview_writes_nothing_and_is_refused_like_its_request(
    *, customer_desk, customer_desks, world, other_customer, other_partner, funded, payroll_pocket
):
    body = on_us(funded, 1_000_00, to=payroll_pocket)
    out = wire(funded, 1_00, await wire_counterparty(customer_desk))
    written = await customer_desk.bank.pool.fetchrow(_WRITTEN)
    await customer_desk.refused("POST", PREVIEW, body, status=409, code="approval-impossible")
    initiator, viewer = [
        await customer_desks(customer_desk.team.customer, role=each) for each in ("INITIATOR", "VIEWER")
    ]
    seen = (await initiator.ask("POST", PREVIEW, body, status=200)).json()
    assert [each["role"] for each in seen["approval"]["approvers"]] == ["ADMIN"]
    assert (seen["settlement_date"], seen["rejection_reason"]) == ("2025-06-03", None)
    await initiator.refused(
        "POST", PREVIEW, on_us(funded, 10_000_00, to=payroll_pocket), status=422, code="insufficient-funds"
    )
    await check_runs(initiator, on_us(funded, 4_000_00, to=payroll_pocket))
    await viewer.refused("POST", PREVIEW, body, status=403, code="forbidden")
    await other_customer.refused("POST", PREVIEW, body, status=404, code="not-found")
    path = f"/api/v1/customers/{customer_desk.team.customer}/transfer-requests/preview/"
    same = (await world.ask("POST", path, body, status=200)).json()
    assert same == seen | {"approval": None}, "a partner's transfers need no approval of members"
    wires = (customer_desk.bank, UUID(customer_desk.team.customer), "wires")
    await cli.disable(*wires)
    await world.refused("POST", path, out, status=403, code="feature-not-enabled")
    await cli.enable(*wires)
    await world.ask("POST", path, out, status=200)
    reviewed = body | {"reviewers": [seen["approval"]["approvers"][0]["member_id"]]}
    await world.ask("POST", path, reviewed, status=422)
    away = path.replace(customer_desk.team.customer, other_customer.team.customer)
    await world.refused("POST", away, body, status=404, code="not-found")
    await other_partner.refused("POST", path, body, status=404, code="not-found")
    assert await customer_desk.bank.pool.fetchrow(_WRITTEN) == written
