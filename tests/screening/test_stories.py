"""An applicant has a name like a listed one: two operators clear it, or one confirms it."""

import asyncpg
import pytest
from tests.support import payees
from tests.support.applications import (
    ABROAD,
    MINORITY,
    NOTE,
    PERSON,
    RETAIL,
    SIMPLE,
    Applicant,
    act,
    clear,
    import_list,
    listing,
    only_hit,
    run_jobs,
)
from tests.support.damage import undetected

from billfold.platform.errors import Refused
from billfold.screening import cli
from billfold.verify.fingerprints import check_fingerprints

LISTED = {"first_name": "Soltan", "last_name": "Warkaschin"}
POCKET = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}


@pytest.fixture
def applicant(world):
    """An applicant of a partner."""
    return Applicant(world)


@pytest.mark.parametrize(
    ("party", "business", "listed"),
    [
        (MINORITY | {"name": LISTED}, {}, "Soltan WARKASCHIN"),
        (MINORITY, {"doing_business_as": "Quelmar Shipping"}, "QUELLMAR SHIPPING COMPANY"),
    ],
)
async def test_a_hit_cleared_by_two_operators_lets_the_application_be_approved(
    applicant, capsys, party, business, listed
):
    desk = applicant.desk
    bank = desk.bank
    made = await applicant.filled(party, **SIMPLE | business)
    reviewed = await applicant.decided(made)
    assert (reviewed["status"], reviewed["exception_reasons"]) == ("MANUAL_REVIEW", ["SANCTIONS_SCREENING"])
    approval = {"application_id": made, "status": "APPROVED"}
    path = "/api/v1/sandbox/application-decision/"
    await desk.refused("POST", path, approval, status=409, code="sanctions-hit-open")

    hit_id, name, _, _, found, _ = await only_hit(bank)
    assert found == listed
    await cli.show(bank, hit_id)
    assert listed in capsys.readouterr().out
    assert "Another operator" in await act(bank, "anna", cli.clear, hit_id, note=NOTE)
    for same in ("anna", " Anna"):
        with pytest.raises(Refused) as refused:
            await act(bank, same, cli.clear, hit_id, note=NOTE)
        assert refused.value.code == "same-operator"
    await desk.refused("POST", path, approval, status=409, code="sanctions-hit-open")
    assert "anna and ben" in await act(bank, "ben", cli.clear, hit_id, note=NOTE)
    with pytest.raises(Refused):
        await act(bank, "carl", cli.confirm, hit_id, note=NOTE)
    await desk.ask("POST", path, approval, status=202)
    await run_jobs(bank)
    assert (await applicant.get(made))["status"] == "APPROVED"
    assert list(await cli.hits(bank)) == []
    dump = str(await bank.pool.fetch("SELECT * FROM sanctions_hit"))
    assert name not in dump


async def test_an_applicant_with_a_confirmed_hit_is_rejected(applicant):
    desk = applicant.desk
    name = {"first_name": "Zoltan", "last_name": "Varkashin"}
    made = await desk.post(RETAIL, PERSON | {"name": name, "date_of_birth": "1962-10-07"})
    await desk.post(f"{RETAIL}{made['id']}/apply/", {}, status=200)
    await run_jobs(desk.bank)
    hit_id, _, score, *_ = await only_hit(desk.bank)
    assert score == 100
    await act(desk.bank, "anna", cli.confirm, hit_id, note="The birth is the same.")
    await run_jobs(desk.bank)
    rejected = await desk.get(f"{RETAIL}{made['id']}/")
    assert (rejected["status"], rejected["exception_reasons"]) == ("REJECTED", ["SANCTIONS_SCREENING"])


async def test_a_name_changed_after_clearing_is_a_new_hit(applicant):
    desk = applicant.desk
    made = await applicant.simple(name="Quellmar Shipping Documents", address=ABROAD)
    assert (await applicant.decided(made))["status"] == "DOCUMENTS_NEEDED"
    await desk.patch(applicant.path(made), {"name": "Quellmar Shipping"})
    await applicant.upload_all(made)
    decision = {"application_id": made, "status": "APPROVED"}
    path = "/api/v1/sandbox/application-decision/"
    await desk.refused("POST", path, decision, status=409, code="sanctions-hit-open")


async def test_a_list_import_screens_customers_and_owners_and_a_confirmed_customer_is_frozen(applicant, tmp_path):
    desk = applicant.desk
    bank = desk.bank
    made = await applicant.simple(name="Ostravel Trading", first_pocket=POCKET)
    customer_id = (await applicant.decided(made))["customer_id"]
    renamed = listing("OSTRAVEL TRADING", 2)
    owner = renamed.replace("Isaura", "Ada").replace("TELLEMONDE MÜLLER", "MARSH").replace("1971", "1980")

    await import_list(bank, tmp_path, renamed)
    first = await only_hit(bank)
    assert first[1:5] == ("Ostravel Trading", 100, 900003, "OSTRAVEL TRADING")
    await clear(bank, first[0])
    waiting = await applicant.simple(name="Pending Co")
    await applicant.decided(waiting)
    await import_list(bank, tmp_path, owner.replace("02/02/2025", "02/03/2025"))
    found = list(await cli.hits(bank))
    assert {each[1:4:2] for each in found} == {("Ada Marsh", 900004)}
    assert len(found) == 2
    for each in found:
        await act(bank, "anna", cli.confirm, each[0], note="The same.")
    await run_jobs(bank)
    assert (await applicant.get(waiting))["status"] == "REJECTED"
    assert (await desk.get(f"/api/v1/customers/{customer_id}/"))["account_status"] == "FROZEN"


async def test_a_customer_with_a_hit_cannot_pay_or_be_unfrozen_until_it_is_cleared(partner_desks, tmp_path):
    desk = await partner_desks("acme", features=("wires",))
    bank, pocket = desk.bank, await desk.funded(500_000_00, await desk.customer("Ostravel Trading"))
    path, state = f"/api/v2/customers/{pocket.customer}/", f"/api/v1/sandbox/customers/{pocket.customer}/"
    own = f"/api/v1/customers/{pocket.customer}/"
    linked = await desk.post(f"{path}counterparties/", payees.wire())
    verified = {"counterparty_id": linked["id"], "status": "APPROVED"}
    await desk.ask("POST", "/api/v1/sandbox/counterparty-verification/", verified, status=202)
    order = f"/api/v1/service-accounts/{pocket.id}/wires/", {"counterparty_id": linked["id"], "amount_usdc": 10_00}
    await desk.until("2025-08-29T18:30:00-04:00")
    waiting = await desk.post(*order)

    await import_list(bank, tmp_path, listing("OSTRAVEL TRADING", 2))
    for where, body in (order, (f"{path}pockets/", POCKET), (f"{path}counterparties/", payees.wire())):
        await desk.refused("POST", where, body, status=409, code="customer-not-open")
    await desk.wire(pocket, 1_00)
    lifted = {"status": "OPEN", "reason": "It is urgent"}
    await desk.refused("POST", state, lifted, status=409, code="sanctions-hit-open")
    await desk.until("2025-09-02T08:00:00-04:00")
    rejected = await desk.get(f"/api/v1/wires/{waiting['id']}/")
    assert (rejected["status"], rejected["reason"]) == ("REJECTED", "ACCOUNT_UNAVAILABLE")

    await clear(bank, (await only_hit(bank))[0])
    assert (await desk.get(own))["account_status"] == "OPEN"
    await desk.post(*order)
    await import_list(bank, tmp_path, listing("OSTRAVEL TRADING GROUP", 3))
    await desk.post(state, {"status": "FROZEN", "reason": "Court order"}, status=200)
    await clear(bank, (await only_hit(bank))[0])
    assert (await desk.get(own))["account_status"] == "FROZEN"
    await desk.post(state, lifted, status=200)


async def test_verify_reports_an_edited_sanctions_hit_and_deletion_is_denied(applicant):
    await applicant.decided(await applicant.simple(name="Quellmar Shipping"))
    async with applicant.desk.bank.pool.acquire() as conn:
        assert await undetected(conn, "sanctions_hit", check_fingerprints, undetectable=("deleted",)) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute("DELETE FROM sanctions_hit")
