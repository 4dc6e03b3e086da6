"""A payee has a name like a listed one: nothing goes to it or comes from it until two operators clear it."""

import asyncio
from typing import Any

import pytest
from tests.support import payees
from tests.support.applications import LIST, NOTE, act, clear, import_list, listing, only_hit, run_jobs
from tests.support.approvals import REQUESTS, decide, on_us, refused
from tests.support.approvals import counterparty as link_on_us
from tests.support.events import notified

from billfold.onboarding import cli as onboarding_cli
from billfold.onboarding.rescreening import screen_backlog
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import retry_now
from billfold.screening import cli
from billfold.screening.hits import clear_hit, confirm_hit
from billfold.screening.screening import NEW_HITS_MAX

QUELLMAR = {"type": "individual", "first_name": "Quellmar", "last_name": "Shipping"}
WARKASCHIN = {"type": "individual", "first_name": "Soltan", "last_name": "Warkaschin"}
BRACHMOND = {"type": "business", "business_name": "Brachmond Industrial Group"}
FRIDAY_EVENING, TUESDAY_AT_EIGHT = "2025-08-29T18:30:00-04:00", "2025-09-02T08:00:00-04:00"


class Payer:
    """A customer with money, whose partner may send wires."""

    def __init__(self, desk, pocket):
        self.desk, self.pocket, self.bank = desk, pocket, desk.bank
        self.counterparties = f"/api/v2/customers/{pocket.customer}/counterparties/"
        self.account = f"/api/v1/service-accounts/{pocket.id}/"

    async def link(self, body):
        """Link an account that is verified; return its id."""
        made = await self.desk.post(self.counterparties, body)
        if made["status"] == "PENDING":
            verified = {"counterparty_id": made["id"], "status": "APPROVED"}
            await self.desk.ask("POST", "/api/v1/sandbox/counterparty-verification/", verified, status=202)
        return made["id"]

    async def shown(self, linked):
        return await self.desk.get(f"{self.counterparties}{linked}/")

    def wire(self, linked):
        return f"{self.account}wires/", {"counterparty_id": linked, "amount_usdc": 10_00}

    def ach(self, linked, direction="CREDIT"):
        body = {"counterparty_id": linked, "amount_usdc": 10_00, "sec_code": "PPD", "direction": direction}
        return f"{self.account}ach-originating/", body | {"company_entry_description": "RENT"}

    def on_us(self, linked, **fields):
        origin = {"id": self.pocket.id, "type": "SERVICE_ACCOUNT"}
        body = {"type": "PEER_TO_PEER", "from_account": origin, "counterparty_id": linked, "amount_usdc": 10_00}
        return "/api/v1/transfers/on-us/", body | fields

    async def stopped(self, *orders):
        """Check that payments are refused, and that nothing is booked."""
        before = await self.desk.counts()
        for path, body in orders:
            await self.desk.refused("POST", path, body, status=409, code="sanction-screen-failed")
        assert await self.desk.counts() == before

    async def events(self, kind):
        return await self.bank.pool.fetchval("SELECT count(*) FROM event WHERE kind = $1", kind)


@pytest.fixture
async def payer(partner_desks):
    desk = await partner_desks("acme", features=("wires", "ccd"))
    return Payer(desk, await desk.funded(500_000_00))


async def test_a_payee_with_a_sanctions_hit_is_paid_after_two_operators_clear_it(payer, capsys):
    desk, bank = payer.desk, payer.bank
    wired = await payer.link(payees.wire(counterparty_name=WARKASCHIN))
    collected = await payer.link(payees.ach(counterparty_name=BRACHMOND))
    misnamed = await payer.link(payees.wire(counterparty_name=QUELLMAR))
    orders = payer.wire(wired), payer.ach(collected), payer.ach(collected, "DEBIT")
    await payer.stopped(*orders, payer.wire(misnamed))
    found = {each[1]: each for each in await cli.hits(bank)}
    assert {each[4] for each in found.values()} == {
        "Soltan WARKASCHIN",
        "BRACHMOND INDUSTRIAL GROUP",
        "QUELLMAR SHIPPING COMPANY",
    }

    hit_id: Any = found["Soltan Warkaschin"][0]
    await cli.show(bank, hit_id)
    await onboarding_cli.list_pending(bank, kind="sanctions")
    printed = capsys.readouterr().out
    assert f"COUNTERPARTY {wired} of {payer.pocket.customer} is OPEN" in printed
    assert "soltan as soltan (100)" in printed
    assert f"{hit_id}  COUNTERPARTY Soltan Warkaschin is like Soltan WARKASCHIN (100 of 100)" in printed
    await act(bank, "anna", cli.clear, hit_id, note=NOTE)
    await payer.stopped(*orders)
    assert "CLEARED" in await act(bank, "ben", onboarding_cli.approve, hit_id)
    await clear(bank, found["Brachmond Industrial Group"][0])
    for (path, body), status in zip(orders, (201, 200, 200), strict=True):
        await desk.post(path, body, status=status)


async def test_a_pending_payment_is_stopped_when_its_payee_matches_a_new_list(payer, tmp_path):
    desk, bank = payer.desk, payer.bank
    before = await desk.value(payer.pocket)
    await desk.until(FRIDAY_EVENING)
    wired, spare = await payer.link(payees.wire()), await payer.link(payees.wire(identifier="000123456780"))
    paid = await payer.link(payees.ach(counterparty_name=payees.CONTOSO))
    wire = await desk.post(*payer.wire(wired))
    entry = await desk.post(*payer.ach(paid), status=200)
    assert (wire["status"], entry["status"]) == ("PENDING", "APPROVED")
    await import_list(bank, tmp_path, listing("CONTOSO LLC", 2))
    assert len(list(await cli.hits(bank))) == 3
    await desk.patch(f"{payer.counterparties}{spare}/", {"status": "UNLINKED"})
    again = await payer.link(payees.wire(identifier="000123456780"))
    await payer.stopped(payer.wire(again), payer.wire(wired), payer.ach(paid))

    await desk.until(TUESDAY_AT_EIGHT)
    await desk.days(2)
    wire = await desk.get(f"/api/v1/wires/{wire['id']}/")
    assert (wire["status"], wire["reason"]) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    assert (await desk.get(f"{payer.account}ach-originating/{entry['id']}/"))["status"] == "CANCELLED"
    assert [await payer.events(each) for each in ("transfers.wire.out.rejected", "transfers.ach.out.rejected")] == [
        1,
        1,
    ]
    assert await desk.value(payer.pocket) > before
    assert not list((bank.settings.rails_dir / "wire").glob("*/fedwire-*"))


async def test_confirming_a_hit_unlinks_the_payee_and_rejects_pending_payments(payer, tmp_path):
    desk, bank = payer.desk, payer.bank
    payee = await desk.pocket(await desk.customer("Quellmar Freight"))
    name = {"type": "business", "business_name": "Quellmar Freight"}
    linked = await link_on_us(desk, payer.pocket.customer, payee, name)
    await desk.post(*payer.on_us(linked))
    await import_list(bank, tmp_path, listing("QUELLMAR FREIGHT", 2))
    kinds = {row["subject_kind"]: row["hit_id"] for row in await bank.pool.fetch("SELECT * FROM sanctions_hit")}
    assert set(kinds) == {"CUSTOMER", "COUNTERPARTY"}
    await payer.stopped(payer.on_us(linked))
    path, body = payer.on_us(linked, async_mode=True)
    ordered = await desk.post(path, body)
    await bank.background.close()
    rejected = await desk.get(f"{path}{ordered['id']}/")
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    await act(bank, "anna", cli.confirm, kinds["COUNTERPARTY"], note="The same.")
    await run_jobs(bank)
    shown = await payer.shown(linked)
    verification = shown["verification"]
    assert (shown["status"], verification["status"], verification["description"]) == (
        "UNLINKED",
        "REJECTED",
        "SANCTION_SCREEN_FAILED",
    )


async def test_concurrent_hit_decisions_count_each_operator_once(payer):
    bank, now = payer.bank, await payer.bank.now()
    linked = [await payer.link(payees.wire(counterparty_name=name)) for name in (WARKASCHIN, BRACHMOND)]
    first, second = [each[0] for each in await cli.hits(bank)]

    async def at_once(*decisions):
        made = [
            decide_hit(bank, hit_id, operator=operator, note=NOTE, now=now)
            for decide_hit, hit_id, operator in decisions
        ]
        answers: list[Any] = await asyncio.gather(*made, return_exceptions=True)
        return sorted(getattr(each, "code", None) or each.status for each in answers)

    assert await at_once((clear_hit, first, "anna"), (clear_hit, first, "ANNA ")) == ["OPEN", "same-operator"]
    assert await at_once((clear_hit, second, "anna"), (clear_hit, second, "ben")) == ["CLEARED", "OPEN"]
    both = await at_once((clear_hit, first, "ben"), (confirm_hit, first, "carl"))
    assert both in (["CLEARED", "sanctions-hit-decided"], ["CONFIRMED", "sanctions-hit-decided"])
    await run_jobs(bank)
    assert "VERIFIED" in [(await payer.shown(each))["status"] for each in linked]


async def test_a_name_with_many_similar_entries_is_screened_in_batches(payer, tmp_path):
    bank = payer.bank
    entry = LIST[LIST.index("  <sdnEntry>\n    <uid>900003") : LIST.index("  <sdnEntry>\n    <uid>900004")]
    count = NEW_HITS_MAX + 3
    more = "".join(
        entry.replace("900003", str(910000 + n)).replace("900303", str(920000 + n)) for n in range(count - 1)
    )
    many = LIST.replace(entry, entry + more).replace("<Record_Count>5", f"<Record_Count>{4 + count}")
    linked = await payer.link(payees.wire(counterparty_name=BRACHMOND))
    await clear(bank, (await only_hit(bank))[0])
    await import_list(bank, tmp_path, many.replace("01/02/2025", "02/02/2025"))
    for expected in (NEW_HITS_MAX, 2, 0):
        found = list(await cli.hits(bank))
        assert len(found) == expected
        for hit in found:
            await payer.stopped(payer.wire(linked))
            await clear(bank, hit[0])
    await payer.desk.post(*payer.wire(linked))


async def test_a_counterparty_that_cannot_be_screened_does_not_block_others(payer, tmp_path):
    bank = payer.bank
    ids = [
        await payer.link(payees.wire(counterparty_name=payees.CONTOSO, identifier=f"00012345678{n}")) for n in range(3)
    ]
    change = "UPDATE counterparty SET counterparty_name = $2 WHERE counterparty_id = $1 RETURNING counterparty_name"
    name = await bank.pool.fetchval("SELECT counterparty_name FROM counterparty WHERE counterparty_id = $1", ids[1])
    await bank.pool.execute(change, ids[1], '{"business_name": 2}')
    await import_list(bank, tmp_path, listing("CONTOSO", 2))
    assert len(list(await cli.hits(bank))) == 2
    async with bank.pool.acquire() as conn:
        assert [row[4] for row in await cli.status(conn)] == ["1", ""]
    await bank.pool.execute(change, ids[1], name)
    await retry_now(bank.pool, wall_now())
    assert await screen_backlog(bank) == 1
    assert len(list(await cli.hits(bank))) == 3


async def test_a_transfer_request_to_a_listed_payee_is_not_approved_until_cleared(
    customer_desk, manager, world, funded, tmp_path
):
    bank, customer = customer_desk.bank, customer_desk.team.customer
    name = {"type": "business", "business_name": "Quellmar Freight"}
    payee = await world.pocket(await world.customer("Quellmar Freight"))
    linked = await link_on_us(world, customer, payee, name)
    made = await customer_desk.post(REQUESTS, on_us(funded, 1_00, counterparty=linked))
    await import_list(bank, tmp_path, listing("QUELLMAR FREIGHT", 2))
    await refused(manager, made, "sanction-screen-failed", answers=409)
    body = on_us(funded, 1_00, counterparty=linked)
    await manager.refused("POST", REQUESTS, body, status=409, code="sanction-screen-failed")
    (hit_id,) = await bank.pool.fetch("SELECT hit_id FROM sanctions_hit WHERE subject_kind = 'COUNTERPARTY'")
    await clear(bank, hit_id[0])
    assert (await decide(manager, made))["transfer"]["execution_status"] == "COMPLETED"
    told = {text for kind, text in await notified(bank) if kind == "COUNTERPARTY_STATUS_CHANGED" and "review" in text}
    assert len(told) == 2
