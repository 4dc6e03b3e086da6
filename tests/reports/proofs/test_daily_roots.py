"""Daily roots: each contains every customer's balance with a proof of its own, and bills cover the total."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.browser import first_match
from tests.support.whole_bank import expect_clean

from billfold.payments.clearing.worker import close_bank_days
from billfold.reports.proofs import signatures
from billfold.reports.proofs.roots import store, worker
from billfold.reports.proofs.roots.store import prove_customer
from billfold.reports.proofs.roots.types import CustomerLeaf, DailyRoot, Unbalanced
from billfold.reports.proofs.signatures import KEYS_PATH, PublicKey, jwks_document, parse_keys, payload_of, to_jwk
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.verify.runner import verify_bank
from billfold.wiring.worker import purge_daily_proofs

CHECKER = Path(__file__).parents[3] / "tools" / "check_proof.py"
_BILLS = """
SELECT asset, sum(credits - debits)::bigint AS units FROM account WHERE customer_id = $1 AND kind = 'lot' GROUP BY asset
"""
LOCKS_OF_SESSIONS = """
SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database
 WHERE datname = current_database() AND locktype = 'advisory'
"""
LATEST = "/.well-known/daily-roots/latest"


@pytest.fixture
async def owner(bank_dsn):
    """A connection of the owner of the database, who may change anything."""
    conn = await asyncpg.connect(bank_dsn)
    yield conn
    await conn.close()


@pytest.fixture
async def holders(bank, new_holder):
    """Three customers with bills of two kinds, at the close of a day."""
    first, second, third = await new_holder(), await new_holder(weeks=26), await new_holder()
    for holder, cents in ((first, 250_000_00), (second, 40_000_01), (third, 1_234_567_89)):
        await holder.deposit(cents)
    return first, second, third


@pytest.fixture
def check(tmp_path):
    """Run the stand-alone checker on a proof; return its status and what it says."""

    def run(proof, keys, **options):
        for name, content in (("proof.json", proof), ("keys.json", keys)):
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        more = []
        for name, value in options.items():
            if name in {"root", "after"}:
                (tmp_path / name).write_text(value)
            more += [f"--{name}", str(tmp_path / name) if name in {"root", "after"} else value]
        command = [
            sys.executable,
            "-I",
            str(CHECKER),
            str(tmp_path / "proof.json"),
            "--key",
            str(tmp_path / "keys.json"),
        ]
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    return run


async def test_a_customer_proves_its_balance_with_only_the_published_keys(
    bank, customer_world, customer_desk, check, console
):
    world, own = customer_world, UUID(customer_desk.team.customer)
    pocket, other = await world.funded(250_000_00, str(own)), await world.funded(987_654_32, weeks=26)
    await world.days(1)
    first = (await world.client.http.get(LATEST)).text
    await world.wire(pocket, 1_234_56)
    await world.days(1)
    published = await world.client.http.get(LATEST)
    keys = (await world.client.http.get(KEYS_PATH)).text
    mine = await customer_desk.get("/api/v1/proofs/latest/")
    theirs = await world.get(f"/api/v1/customers/{other.customer}/proofs/2025-06-03/")

    assert published.headers["content-type"] == "application/jose"
    assert mine["root"] == theirs["root"] == published.text == (await customer_desk.http.get(LATEST)).text
    assert mine == await world.get(f"/api/v1/customers/{own}/proofs/2025-06-03/")
    await expect_page(await console(customer_desk), mine)
    bills = await bank.pool.fetch(_BILLS, own)
    status, said = check(mine, keys, root=published.text, after=first, day="2025-06-03", customer=str(own))
    assert status == 0, said
    for row in bills:
        assert f"{row['units']:,} units of {row['asset']}" in said
    assert check(theirs, keys)[0] == 0
    backing = check({"root": published.text}, keys)
    assert (backing[0], "customers own" in backing[1]) == (0, True)
    # What a proof shows of others are hashes: nothing else.
    assert other.customer not in json.dumps(mine)

    raised = await bank.pool.fetch("SELECT payload FROM event WHERE kind = 'proofs.daily-root.published'")
    assert [json.loads(row["payload"])["root"] for row in raised] == [first, published.text]
    await world.refused("GET", f"/api/v1/customers/{own}/proofs/2025-06-01/", status=404, code="not-found")
    await world.refused("GET", f"/api/v1/customers/{own}/proofs/yesterday/", status=404, code="not-found")
    assert (await world.client.http.get("/.well-known/daily-roots/2030-01-01")).status_code == 404
    await expect_clean(bank)


async def expect_page(browser, proof):
    """The root of the day is a page for everybody, where a member finds the proof of its company."""
    root = payload_of(proof["root"], DailyRoot)
    await browser.go("/proofs/2025-06-03/")
    said = browser.text
    assert all(f"{cusip} {each.at_custodian:,} {each.to_receive:,}" in said for cusip, each in root.bills.items())
    assert (await browser.go(first_match(r'href="([^"]+/proof.json)"', browser.page.text))).json() == proof
    browser.http.cookies.clear()
    assert "sign in" in (await browser.go("/proofs/latest")).text
    assert (await browser.go("/proofs/yesterday")).status_code == 404


def _swap(proof, change):
    """A copy of a proof that was changed."""
    changed = json.loads(json.dumps(proof))
    change(changed)
    return changed


async def test_a_forged_balance_proof_is_refused(bank, holders, customer_world, check):
    await customer_world.days(1)
    root = await store.get_root(bank.pool)
    proofs = [await prove_customer(bank.pool, bank, root, each.customer_id) for each in holders]
    mine, theirs, bigger = [json.loads(msgspec.json.encode(each)) for each in proofs]
    await customer_world.days(1)
    later = await store.get_root(bank.pool)
    keys = json.dumps(jwks_document(await signatures.list_public_keys(bank.pool)))
    assert check(mine, keys)[0] == 0
    assert len(mine["bills"]) > 2

    def leaf(old, new):
        return lambda p: p["customer"].update(leaf=p["customer"]["leaf"].replace(old, new, 1))

    units = json.loads(mine["bills"][0]["leaf"])["units"]
    forged = {
        "other units": _swap(mine, leaf('"units":', '"units":1')),
        "negative cash": _swap(mine, leaf('"cash":', '"cash":-')),
        "of another": {**theirs, "salt": mine["salt"]},
        "bills of another": {**mine, "bills": theirs["bills"]},
        "bills under another root": {**mine, "bills": bigger["bills"]},
        "one leaf twice": {**mine, "bills": [mine["bills"][0], *mine["bills"]]},
        "one leaf for two": {**mine, "bills": [mine["bills"][0]] * 2},
        "a leaf left out": {**mine, "bills": mine["bills"][1:]},
        "no bills": {**mine, "bills": []},
        "half a leaf": _swap(
            mine, lambda p: p["bills"][0].update(leaf=p["bills"][0]["leaf"].replace(str(units), str(units // 2)))
        ),
        "another place": _swap(mine, lambda p: p["bills"][0].update(at=p["bills"][0]["at"] + units)),
        "a shorter way": _swap(mine, lambda p: p["customer"]["path"].pop()),
        "a node as a hash": _swap(mine, lambda p: p["customer"]["path"].__setitem__(0, p["customer"]["path"][0] * 2)),
        "the root of another day": {**mine, "root": later.jws},
        "another payload": {**mine, "root": later.jws.split(".")[0] + "." + root.jws.split(".", 1)[1]},
    }
    forged["another payload"]["root"] = ".".join(
        (root.jws.split(".")[0], later.jws.split(".")[1], root.jws.split(".")[2])
    )
    for what, proof in forged.items():
        status, said = check(proof, keys)
        assert status == 1, (what, said)
        assert "does not hold" in said or "cannot be read" in said
    # Replayed, or shown to some only.
    for options in (
        {"root": later.jws},
        {"day": str(later.day)},
        {"after": later.jws},
        {"customer": str(holders[1].customer_id)},
    ):
        assert check(mine, keys, **options)[0] == 1
    stranger = Ed25519PrivateKey.from_private_bytes(b"s" * 32).public_key()
    assert check(mine, jwks_document([PublicKey("", stranger)]))[0] == 1
    x = str(to_jwk(stranger)["x"])
    assert "forged" in check(mine, keys.replace(x, "x").replace(json.loads(keys)["keys"][0]["x"], x))[1]
    (key,), taken_at = parse_keys(keys.encode()), payload_of(root.jws, DailyRoot).taken_at
    for after, expected, said in ((0, 1, "had revoked before"), (1, 0, "Caution")):
        revoked = jwks_document([key._replace(revoked_at=taken_at + timedelta(seconds=after))])
        status, found = check(mine, revoked)
        assert (status, said in found) == (expected, True), found


async def _stated(bank):
    """The statements of each root about every customer and every bill, without what is drawn for it."""
    stated = {}
    for root in await store.list_roots(bank.pool):
        payload = payload_of(root.jws, DailyRoot)
        pages = await bank.pool.fetch(
            "SELECT leaves FROM daily_root_page WHERE number = $1 AND leaves IS NOT NULL", root.number
        )
        leaves = [msgspec.json.decode(each, type=CustomerLeaf) for page in pages for each in page[0].split(b"\n")]
        stated[payload.day] = (
            payload.number,
            {each.customer: (each.entry_no, each.cash, {c: h.units for c, h in each.bills.items()}) for each in leaves},
            {cusip: (line.at_custodian, line.to_receive, line.lots) for cusip, line in payload.bills.items()},
        )
    return stated


async def test_a_missed_day_gets_its_original_daily_root(bank, holders, new_holder, owner):
    clock, (first, second, third) = ClockStepper(bank), holders
    await clock.advance_business_days(1)
    await second.deposit(11_111_11)
    await clock.advance(timedelta(hours=8))  # after the close: of the next day
    await first.deposit(22_222_22)
    late = await new_holder()
    await late.deposit(33_333_33)
    await clock.advance(timedelta(hours=16))
    await third.deposit(44_444_44)
    await clock.advance_business_days(4)  # over a weekend and the maturity of bills
    in_time = await _stated(bank)
    days = sorted(in_time)
    assert [late.customer_id in in_time[day][1] for day in days] == [False, False, *[True] * (len(days) - 2)]

    await owner.execute("SET session_replication_role = replica")
    for table in ("daily_root_page", "daily_root"):
        await owner.execute(f"DELETE FROM {table} WHERE number > 1")
    await worker.publish_root(bank)
    assert await _stated(bank) == in_time
    await expect_clean(bank)


async def test_proofs_are_kept_for_the_configured_days_and_signed_roots_forever(bank, customer_world):
    world = customer_world
    pocket = await world.funded(250_000_00)
    await world.days(1)
    root, path = await store.get_root(bank.pool), f"/api/v1/customers/{pocket.customer}/proofs/2025-06-02/"
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await bank.pool.execute("DELETE FROM daily_root_page")
    made = await bank.pool.fetchval("SELECT made_at FROM daily_root")
    assert await purge_daily_proofs(bank.pool, made + timedelta(days=30), days=30) == 0
    assert (await world.get(path))["root"] == root.jws
    assert await purge_daily_proofs(bank.pool, made + timedelta(days=31), days=30) > 0
    answer = await world.refused("GET", path, status=404, code="not-found")
    assert "no longer kept" in str(answer)
    assert (await world.client.http.get("/.well-known/daily-roots/2025-06-02")).text == root.jws
    await expect_clean(bank)


async def test_concurrent_workers_publish_one_daily_root(bank, holders, monkeypatch):
    monkeypatch.setattr(worker, "IN_THREAD_MAX", 0)
    held, make_root = [], worker.make_root

    async def counted_make_root(*values, **more):
        held.append(await bank.pool.fetchval(LOCKS_OF_SESSIONS))
        return await make_root(*values, **more)

    monkeypatch.setattr(worker, "make_root", counted_make_root)
    await close_bank_days(bank, await bank.now() + timedelta(days=1))
    made = await asyncio.gather(*(worker.publish_root(bank) for _ in range(4)))
    assert len({each.jws for each in made}) == 1
    assert held == [0]  # behind a pooler it would stay held
    assert await bank.pool.fetchval("SELECT count(*) FROM daily_root") == 1
    await expect_clean(bank)


async def test_no_daily_root_is_published_while_liabilities_exceed_assets(bank, holders, owner):
    await ClockStepper(bank).advance_business_days(1)
    await owner.execute("UPDATE account SET credits = credits + 1 WHERE kind = 'lot'")
    await ClockStepper(bank).advance_business_days(1)
    ((day, reason),) = await store.list_refusals(bank.pool)
    assert (str(day), "are owed to customers" in reason) == ("2025-06-03", True)
    assert len(await store.list_roots(bank.pool)) == 1
    with pytest.raises(Unbalanced):
        await worker.publish_root(bank)
    async with bank.pool.acquire() as reader:
        found = (await verify_bank(reader, vault=bank.vault)).findings
    assert "nothing was published" in " ".join(map(str, found))
    await owner.execute("UPDATE account SET credits = credits - 1 WHERE kind = 'lot'")
    assert (await worker.publish_root(bank)).number == 2
    assert await store.list_refusals(bank.pool) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE daily_root SET jws = left(jws, -3) || 'AAA'",
        "UPDATE daily_root_page SET tiles = set_byte(tiles, 20, get_byte(tiles, 20) # 1) WHERE tree = 'customers'",
        "UPDATE daily_root_page SET tiles = set_byte(tiles, 20, get_byte(tiles, 20) # 1) WHERE tree <> 'customers'",
        "DELETE FROM daily_root_page WHERE tree <> 'customers'",
        "INSERT INTO daily_root_purge SELECT number, made_at FROM daily_root",
        """UPDATE daily_root_page SET leaves = replace(encode(leaves, 'escape'), '"version":', '"version":9')::bytea
            WHERE leaves IS NOT NULL""",
    ],
)
async def test_verify_reports_a_damaged_daily_root(bank, holders, owner, damage):
    await ClockStepper(bank).advance_business_days(1)
    await expect_clean(bank)
    for table in ("daily_root", "daily_root_page"):
        await owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    await owner.execute(damage)
    async with bank.pool.acquire() as reader:
        report = await verify_bank(reader, vault=bank.vault)
    assert report.first is not None
    assert report.first.table.startswith("daily_root")
