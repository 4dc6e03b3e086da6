"""Batches of counterparties over HTTP: one approval where a single one needs it, the same mistakes, the same limits."""

from uuid import UUID

import pytest
from tests.support.approvals import hold_roles
from tests.support.whole_bank import with_limits

from billfold.batches.commands import CounterpartyList
from billfold.batches.types import RUN_BATCH
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.platform.errors import Unavailable
from billfold.verify.runner import verify_bank

BATCHES = "/api/v1/batches/"
PAYEES = "/api/v2/counterparties/"
ACME = {
    "type": "wire",
    "business_name": "Acme Cleaning LLC",
    "routing_number": "021000021",
    "identifier": "4410027719",
    "street_address": "9 Depot Street",
    "city": "Albany",
    "state": "NY",
    "postal_code": "12207",
    "country": "US",
    "verification": "incoming_wire",
}
WREN = {
    "type": "ach",
    "first_name": "Ada",
    "last_name": "Wren",
    "routing_number": "121000358",
    "account_number": "771200443",
    "account_type": "CHECKING",
    "verification": "micro_deposits",
    "idempotency_key": "wren",
}


def batch(*rows, mode="INDEPENDENT", **fields):
    return {"kind": "COUNTERPARTIES", "mode": mode, "rows": list(rows), **fields}


async def requested(desk, body, **options):
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    return await desk.post(BATCHES, body, **options)


async def carried_out(desk, world, made):
    await world.later(seconds=1)
    return await desk.get(f"{BATCHES}{made['id']}/")


async def rows_of(desk, made):
    return (await desk.get(f"{BATCHES}{made['id']}/rows/", {"limit": 100}))["items"]


def results(rows):
    return [(each["state"], each["problem"] and each["problem"]["code"]) for each in rows]


async def names(desk):
    return [each["counterparty_name"] for each in (await desk.get(PAYEES))["items"]]


async def decide(desk, made, status="APPROVED", *, answers=200):
    body = {"status": status, "content_hash": made["approval"]["content_hash"]}
    return (await desk.ask("PATCH", f"{BATCHES}{made['id']}/status/", body, status=answers)).json()


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return (await verify_bank(conn, market=bank.market, vault=bank.vault)).findings


async def check_probes(desk):
    with_limits(desk.bank, {"counterparties.customer": 1})
    await desk.bank.pool.execute("DELETE FROM rate_limit_window")
    probes = batch(*({"type": "on_us", "business_name": "X", "account_number": f"6130{n:08}"} for n in range(2)))
    assert len((await desk.ask("POST", f"{BATCHES}preview/", probes, status=200)).json()["problems"]) == 2
    await desk.refused("POST", f"{BATCHES}preview/", probes, status=429, code="rate-limited")


@pytest.mark.usefixtures("funded")
async def test_a_batch_adds_counterparties_as_single_ones_and_says_why_not(customer_desk, world):
    bank = customer_desk.bank
    twice = {**ACME, "business_name": "Twice Ltd", "routing_number": "021000022", "country": "XX"}
    made = await requested(customer_desk, batch(ACME, WREN, twice, {"type": "ach"}))
    assert (made["status"], made["kind"], made["amount"]["value"]) == ("PROCESSING", "COUNTERPARTIES", 0)
    done = await carried_out(customer_desk, world, made)
    assert (done["status"], done["rows"]) == ("COMPLETED", {"total": 4, "waiting": 0, "completed": 2, "failed": 2})
    first, second, third, fourth = await rows_of(customer_desk, made)
    shown = await customer_desk.get(f"{PAYEES}{first['counterparty_id']}/")
    assert (shown["counterparty_name"], shown["verification"]["type"]) == ("Acme Cleaning LLC", "incoming_wire")
    assert (first["counterparty_type"], first["transfer_id"], first["counterparty"]["details"]["identifier"]) == (
        "wire",
        None,
        ACME["identifier"],
    )
    assert (third["problem"]["field"], fourth["problem"]["field"]) == ("routing_number", "routing_number")
    entries = (await customer_desk.get("/api/v1/team/audit-logs/", {"limit": 100}))["items"]
    assert [each["action"] for each in entries].count("counterparty.created") == 2
    again = await requested(customer_desk, batch(WREN, {**ACME, "idempotency_key": "wren"}))
    assert results(await rows_of(customer_desk, again))[1] == ("FAILED", "invalid-input")
    await carried_out(customer_desk, world, again)
    assert (await rows_of(customer_desk, again))[0]["counterparty_id"] == second["counterparty_id"]
    other = await requested(customer_desk, batch({**WREN, "account_number": "99887766"}))
    await carried_out(customer_desk, world, other)
    assert results(await rows_of(customer_desk, other)) == [("FAILED", "idempotency-key-reused")]
    assert sorted(await names(customer_desk)) == ["Acme Cleaning LLC", "Ada Wren"]
    assert not await verified(bank)


@pytest.mark.usefixtures("funded")
async def test_a_batch_of_counterparties_is_approved_as_one_where_a_single_one_needs_it(customer_desk, manager, world):
    bank, customer = customer_desk.bank, UUID(customer_desk.team.customer)
    await hold_roles(bank, customer, "NEW_COUNTERPARTY")
    body = batch({**ACME, "business_name": "Held LLC"}, WREN, mode="ATOMIC")
    preview = await customer_desk.ask("POST", f"{BATCHES}preview/", body, status=200)
    assert (preview.json()["approval"]["required_approvals"], preview.json()["problems"]) == (1, [])
    made = await requested(customer_desk, body)
    assert made["status"] == "PENDING"
    await decide(customer_desk, made, answers=403)
    assert "Held LLC" not in await names(customer_desk)
    assert (await rows_of(manager, made))[0]["counterparty"]["details"]["routing_number"] == "021000021"
    assert (await decide(manager, made))["status"] == "PROCESSING"
    done = await carried_out(customer_desk, world, made)
    assert (done["status"], done["rows"]["completed"]) == ("COMPLETED", 2)
    assert (await names(customer_desk)).count("Held LLC") == 1
    job = ScheduledJob(RUN_BATCH, UUID(made["id"]), customer, at=await bank.now())
    await run_job(bank, job)
    assert len(await names(customer_desk)) == 2
    denied = await requested(customer_desk, batch({**ACME, "business_name": "Denied LLC"}))
    await decide(manager, denied, "DENIED")
    await carried_out(customer_desk, world, denied)
    assert "Denied LLC" not in await names(customer_desk)

    await bank.pool.execute("DELETE FROM rate_limit_window")
    await customer_desk.invalid(
        "POST",
        BATCHES,
        batch(ACME, {**ACME, "customer_id": str(customer)}, mode="ATOMIC"),
        loc="body.rows.1.customer_id",
    )
    csv = "type,business_name,account_number\non_us,Nobody,000000000000\n"
    wrong = {"kind": "COUNTERPARTIES", "mode": "ATOMIC", "csv": csv}
    await customer_desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await customer_desk.invalid("POST", BATCHES, wrong, loc="body.csv")
    await check_probes(customer_desk)
    assert not await verified(bank)


async def test_a_partner_adds_counterparties_of_its_own_customers_all_or_none(world):
    one, other = await world.pocket(), await world.pocket()
    path = f"/api/v2/customers/{one.customer}/counterparties/"
    rows = [{**ACME, "customer_id": one.customer}, {**ACME, "business_name": "Second", "customer_id": one.customer}]
    made = await world.post(BATCHES, batch(*rows, mode="ATOMIC"))
    await carried_out(world, world, made)
    assert results(await rows_of(world, made)) == [("COMPLETED", None)] * 2
    assert sorted(each["counterparty_name"] for each in (await world.get(path))["items"]) == [
        "Acme Cleaning LLC",
        "Second",
    ]
    mixed = batch(rows[0], {**rows[1], "customer_id": other.customer}, mode="ATOMIC")
    await world.invalid("POST", BATCHES, mixed, loc="body.rows.1.customer_id")
    foreign = batch(rows[0], {**rows[1], "customer_id": str(UUID(int=7))}, {**ACME})
    made = await world.post(BATCHES, foreign)
    await carried_out(world, world, made)
    assert results(await rows_of(world, made)) == [
        ("COMPLETED", None),
        ("FAILED", "not-found"),
        ("FAILED", "invalid-input"),
    ]
    await world.invalid(
        "POST",
        BATCHES,
        batch({**rows[0], "verification": "unverified"}, mode="ATOMIC"),
        loc="body.rows.0.verification",
    )
    stranger = "6130" + "0" * 8
    names_only = [{"type": "on_us", "business_name": "Nobody", "account_number": stranger, "customer_id": one.customer}]
    await world.invalid("POST", BATCHES, batch(*names_only), loc="body.rows.0.account_number")
    rows = [{**rows[0], "customer_id": other.customer, "business_name": f"No {n}"} for n in range(3)]
    with_limits(world.bank, {"counterparties.customer": 2})
    await world.invalid("POST", BATCHES, batch(*rows, mode="ATOMIC"), loc="body.rows")
    made = [await world.post(BATCHES, batch(*rows[:2], mode="ATOMIC")) for _ in range(2)]
    await carried_out(world, world, made[0])
    found = [results(await rows_of(world, each)) for each in made]
    assert sorted(found) == [[("COMPLETED", None)] * 2, [("FAILED", "usage-limit-reached")] * 2]
    assert len((await world.get(f"/api/v2/customers/{other.customer}/counterparties/"))["items"]) == 2
    async with world.bank.pool.acquire() as conn:
        assert not (await verify_bank(conn, market=world.bank.market, vault=world.bank.vault)).findings


async def test_a_fault_of_the_bank_ends_no_row_and_adds_and_counts_nothing_twice(world, monkeypatch):
    pocket, other = await world.pocket(), await world.pocket()
    bank, row = world.bank, {**ACME, "customer_id": pocket.customer, "idempotency_key": "acme"}
    submit_all, submit = bank.engine.submit_all, bank.engine.submit

    async def answer_lost(commands):
        await submit_all(commands)
        return [Unavailable("The bank is shutting down.") for _ in commands]

    async def fail(command):
        if isinstance(command, CounterpartyList):
            raise Unavailable("The database is unavailable.")
        return await submit(command)

    for mode, broken, failing in (("INDEPENDENT", "submit_all", answer_lost), ("ATOMIC", "submit", fail)):
        rows = [{**row, "business_name": f"{mode} {n}", "idempotency_key": f"{mode}-{n}"} for n in range(2)]
        made = await world.post(BATCHES, batch(*rows, mode=mode))
        stored = await bank.pool.fetchrow("SELECT customer_id, request_id FROM batch WHERE finished_at IS NULL")
        job = ScheduledJob(RUN_BATCH, stored["request_id"], stored["customer_id"], at=await bank.now())
        with monkeypatch.context() as broke:
            broke.setattr(bank.engine, broken, failing)
            with pytest.raises(Unavailable):
                await run_job(bank, job)
        assert results(await rows_of(world, made)) == [("WAITING", None)] * 2
        await carried_out(world, world, made)
        assert results(await rows_of(world, made)) == [("COMPLETED", None)] * 2
    assert await used(world, pocket.customer, "counterparties.customer") == 4
    assert len((await world.get(f"/api/v2/customers/{pocket.customer}/counterparties/"))["items"]) == 4

    same_key = [await world.post(BATCHES, batch({**row, "customer_id": each.customer})) for each in (pocket, other)]
    await carried_out(world, world, same_key[0])
    assert [results(await rows_of(world, each)) for each in same_key] == [[("COMPLETED", None)]] * 2
    assert len((await world.get(f"/api/v2/customers/{other.customer}/counterparties/"))["items"]) == 1


async def test_an_atomic_batch_is_no_way_around_the_limit_of_wrong_names(world):
    pocket, target = await world.pocket(), await world.pocket(await world.customer("Northwind"))
    portal = await world.get(f"{target.path}portals/{target.portal}/")

    def guesses(*names):
        account = {"type": "on_us", "account_number": portal["network_address"], "customer_id": pocket.customer}
        return [{**account, "business_name": name} for name in names]

    many = guesses(*(f"Guess {n}" for n in range(20)), "Northwind")
    await world.invalid("POST", BATCHES, batch(*many, mode="ATOMIC"), loc="body.rows")
    waiting = await world.post(BATCHES, batch(*guesses("Guess", "Northwind"), mode="ATOMIC"))
    await world.post(BATCHES, batch(*many[:19]))
    await carried_out(world, world, waiting)
    assert await used(world, pocket.customer, "name_checks.customer") in {19, 20}
    for name in ("Wrong", "Northwind"):
        await world.invalid("POST", BATCHES, batch(*guesses(name, "Sentinel"), mode="ATOMIC"), loc="body.rows")


async def used(world, customer, limit):
    limits = (await world.get(f"/api/v1/customers/{customer}/limits/"))["limits"]
    return next(each["used"] for each in limits if each["name"] == limit)
