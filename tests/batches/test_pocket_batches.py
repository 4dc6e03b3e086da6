"""Batches of Pockets over HTTP, and rows of transfers that capture holds and carry notes."""

import pytest
from tests.accounts.holds.test_routes import linked
from tests.batches.test_counterparty_batches import carried_out, requested, results, rows_of, verified
from tests.support import payees
from tests.support.whole_bank import with_limits
from tests.support.world import MemberDesk, token_for

BATCHES, POCKETS = "/api/v1/batches/", "/api/v2/pockets/"
CSV = """pocket_name,trading_strategy_id,external_id,metadata.Site,idempotency_key
Rent,UST-4W,rent-1,Albany,rent
Taxes,UST-4W,tax-1,,
Again,UST-4W,rent-1,,
Wrong,UST-9W,,,
,UST-4W,,,
"""


def opened(*rows, mode="INDEPENDENT", **fields):
    return {"kind": "POCKETS", "mode": mode, "rows": list(rows), **fields}


@pytest.mark.usefixtures("funded")
async def test_a_batch_opens_pockets_as_single_ones_and_says_why_not(customer_desk, world, bank, customer_app):
    csv = {"kind": "POCKETS", "mode": "INDEPENDENT", "csv": CSV}
    shown = (await customer_desk.ask("POST", f"{BATCHES}preview/", csv, status=200)).json()
    assert [each["number"] for each in shown["problems"]] == [3, 4, 5]
    made = await requested(customer_desk, csv)
    done = await carried_out(customer_desk, world, made)
    assert (done["status"], done["rows"]["completed"], done["amount"]["value"]) == ("COMPLETED", 2, 0)
    rows = await rows_of(customer_desk, made)
    assert results(rows) == [
        ("COMPLETED", None),
        ("COMPLETED", None),
        ("FAILED", "external-id-taken"),
        ("FAILED", "invalid-input"),
        ("FAILED", "invalid-input"),
    ]
    assert [(each["problem"] or {}).get("field") for each in rows][3:] == ["trading_strategy_id", "pocket_name"]
    found = (await customer_desk.get(POCKETS, {"external_id": "rent-1"}))["items"]
    assert [(each["id"], each["metadata"]) for each in found] == [(rows[0]["pocket_id"], {"Site": "Albany"})]
    assert rows[0]["pocket"] == {
        "pocket_name": "Rent",
        "deposit_strategy_id": "UST-4W",
        "reinvestment_strategy_id": "UST-4W",
    }
    assert not await verified(bank)
    token = await token_for(bank, customer_desk.team, scopes=("transfers.read", "transfers.write"))
    paying = MemberDesk(bank, customer_app, customer_desk.team, token)
    await bank.pool.execute("DELETE FROM rate_limit_window")
    await paying.refused("POST", BATCHES, csv, status=403, code="forbidden")


@pytest.mark.usefixtures("funded")
async def test_an_atomic_batch_opens_all_pockets_or_none_and_the_same_row_once(customer_desk, world, bank):
    before = (await customer_desk.get(POCKETS))["count"]
    rent = {"pocket_name": "Rent", "trading_strategy_id": "UST-4W", "external_id": "rent-1", "idempotency_key": "rent"}
    made = await carried_out(customer_desk, world, await requested(customer_desk, opened(rent)))
    both = opened({"pocket_name": "One", "trading_strategy_id": "UST-4W"}, mode="ATOMIC")
    both["rows"] += [{**both["rows"][0], "external_id": "rent-1"}]
    refused = await carried_out(customer_desk, world, await requested(customer_desk, both))
    assert (refused["status"], results(await rows_of(customer_desk, refused))) == (
        "FAILED",
        [("FAILED", "batch-refused"), ("FAILED", "external-id-taken")],
    )
    both["rows"][1]["external_id"], both["rows"][1]["idempotency_key"] = "two", "rent"
    await carried_out(customer_desk, world, twice := await requested(customer_desk, both))
    assert results(await rows_of(customer_desk, twice))[1] == ("FAILED", "idempotency-key-reused")
    del both["rows"][1]["idempotency_key"]
    both["rows"].append(rent)
    done = await carried_out(customer_desk, world, await requested(customer_desk, both))
    assert (done["status"], done["rows"]["completed"]) == ("COMPLETED", 3)
    same = (await rows_of(customer_desk, made))[0]["pocket_id"]
    assert (await rows_of(customer_desk, done))[2]["pocket_id"] == same
    assert (await customer_desk.get(POCKETS))["count"] == before + 3
    entries = (await customer_desk.get("/api/v1/team/audit-logs/", {"limit": 100}))["items"]
    assert [each["action"] for each in entries].count("pocket.created") >= 3
    filters = {"kind[]": "POCKETS", "status[]": "FAILED"}
    assert len((await customer_desk.get(BATCHES, filters))["items"]) == 2
    assert (await customer_desk.get(BATCHES, {"kind[]": "TRANSFERS"}))["items"] == []
    assert not await verified(bank)


async def test_a_partner_opens_pockets_of_its_customers_only_and_so_many_in_a_day(world, other_partner):
    with_limits(world.bank, {"pockets.customer": 3})
    own = await world.customer()
    theirs = await other_partner.customer()
    row = {"pocket_name": "Rent", "deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": None}
    rows = [{**row, "customer_id": own}, {**row, "customer_id": theirs}, row]
    made = await world.post(BATCHES, opened(*rows))
    await carried_out(world, world, made)
    assert results(await rows_of(world, made)) == [
        ("COMPLETED", None),
        ("FAILED", "not-found"),
        ("FAILED", "invalid-input"),
    ]
    await other_partner.refused("GET", f"{BATCHES}{made['id']}/rows/", status=404, code="not-found")
    found = await world.get(f"/api/v2/customers/{own}/pockets/{(await rows_of(world, made))[0]['pocket_id']}/")
    assert (found["pocket_name"], found["reinvestment_strategy_id"]) == ("Rent", None)
    whole = opened(*[{**row, "customer_id": own}] * 3, mode="ATOMIC")
    for path in (BATCHES, f"{BATCHES}preview/"):
        await world.invalid("POST", path, whole, loc="body.rows")
    await carried_out(world, world, beyond := await world.post(BATCHES, {**whole, "mode": "INDEPENDENT"}))
    assert results(await rows_of(world, beyond)) == [
        ("COMPLETED", None),
        ("COMPLETED", None),
        ("FAILED", "usage-limit-reached"),
    ]
    path = f"/api/v2/customers/{own}/pockets/"
    await world.refused("POST", path, row, status=429, code="usage-limit-reached")
    other = await world.customer()
    await world.post(f"/api/v2/customers/{other}/pockets/", row)


async def check_rows(desk, world, made, hold, noted):
    """Check the results of four rows: two that capture a hold with notes, one beyond it, one whose note is taken."""
    await carried_out(desk, world, made)
    rows = await rows_of(desk, made)
    assert [state for state, _ in results(rows)] == ["COMPLETED", "COMPLETED", "FAILED", "FAILED"], rows
    shown = [(each["hold_id"], each["external_id"], each["metadata"]) for each in rows[:2]]
    assert shown == [(hold["id"], "pay-1", {"Run": "May"}), (hold["id"], "pay-2", {})]
    found = (await desk.get(noted, {"external_id": "pay-1", **desk.filters}))["items"]
    assert [each["id"] for each in found] == [rows[0]["transfer_id"]]


async def test_rows_of_a_partner_capture_a_hold_and_carry_notes(partner_desks):
    world = await partner_desks("acme", features=("wires",))
    pocket = await world.funded(10_000_00)
    there, world.filters = await world.pocket(pocket.customer), {"customer_id": pocket.customer}
    hold = await world.post(f"{pocket.path}holds/", {"amount_usdc": 1_000_00, "reason": "Deposit"})
    pays = {"from_pocket_id": pocket.id, "amount_usdc": 400_00, "hold_id": hold["id"]}
    within = {**pays, "type": "INTERNAL_REALLOCATION", "to_pocket_id": there.id}
    wire = {**pays, "type": "WIRE", "counterparty_id": await linked(world, pocket, payees.wire())}
    rows = [
        {**within, "external_id": "pay-1", "metadata": {"Run": "May"}, "idempotency_key": "one"},
        {**wire, "external_id": "pay-2"},
        within,
        {**within, "amount_usdc": 1_00, "external_id": "pay-1"},
    ]
    made = await world.post(BATCHES, {"kind": "TRANSFERS", "mode": "INDEPENDENT", "rows": rows})
    await check_rows(world, world, made, hold, "/api/v1/transfers/on-us/")
    rows[1:] = [{**within, "amount_usdc": 200_00}]
    again = {"kind": "TRANSFERS", "mode": "ATOMIC", "rows": rows}
    shown = (await world.ask("POST", f"{BATCHES}preview/", again, status=200)).json()
    assert ([each["payments"] for each in shown["pockets"]], shown["problems"]) == ([1], [])
    done = await carried_out(world, world, await world.post(BATCHES, again))
    assert (done["status"], done["rows"]["completed"]) == ("COMPLETED", 2)
    assert (await world.get(f"{pocket.path}holds/{hold['id']}/"))["status"] == "CAPTURED"
    rows[0]["metadata"] = {"Run": "June"}
    changed = await world.post(BATCHES, again)
    await carried_out(world, world, changed)
    assert results(await rows_of(world, changed))[0] == ("FAILED", "idempotency-key-reused")
    assert not await verified(world.bank)


async def test_rows_of_members_capture_a_hold_and_carry_notes(customer_desk, manager, world, funded, payroll_pocket):
    customer_desk.filters = {}
    hold = await customer_desk.post(f"/api/v2/pockets/{funded.id}/holds/", {"amount_usdc": 1_000_00, "reason": "May"})
    row = {
        "type": "INTERNAL_REALLOCATION",
        "from_pocket_id": funded.id,
        "to_pocket_id": payroll_pocket.id,
        "amount_usdc": 400_00,
        "hold_id": hold["id"],
    }
    rows = [
        {**row, "external_id": "pay-1", "metadata": {"Run": "May"}},
        {**row, "external_id": "pay-2"},
        row,
        {**row, "amount_usdc": 1_00, "external_id": "pay-1"},
    ]
    whole, made = [
        await requested(customer_desk, {"kind": "TRANSFERS", "mode": mode, "rows": rows})
        for mode in ("ATOMIC", "INDEPENDENT")
    ]
    for each in (whole, made):
        body = {"status": "APPROVED", "content_hash": each["approval"]["content_hash"]}
        await manager.ask("PATCH", f"{BATCHES}{each['id']}/status/", body, status=200)
        await carried_out(customer_desk, world, each)
    codes = [code for _, code in results(await rows_of(customer_desk, whole))]
    assert codes == ["batch-refused", "batch-refused", "amount-not-allowed", "external-id-taken"]
    await check_rows(customer_desk, world, made, hold, "/api/v1/transfer-requests/")
    assert not await verified(customer_desk.bank)
