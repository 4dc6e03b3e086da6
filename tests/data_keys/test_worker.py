"""A closed customer is forgotten when its retention ends: its key is destroyed, and the money stays proved."""

from datetime import timedelta

from tests.data_keys.test_sealed_columns import customer_with_contact, verified
from tests.documents.test_routes import PAGE, sent
from tests.wiring.test_worker import set_clock

from billfold.data_keys.worker import shred_after_retention

YEAR = timedelta(days=366)


async def test_a_closed_customer_is_forgotten_after_six_years_and_an_open_one_never(partner_desks):
    partner_desk = await partner_desks("acme", features=("customer_closure",))
    bank = partner_desk.bank
    (closed_path, closed), (open_path, _) = [
        await customer_with_contact(partner_desk, name) for name in ("Acme", "Beta")
    ]
    await partner_desk.patch(closed_path, {"status": "CLOSED", "closure_reason": "USER_INSTIGATED"})
    closed_at = await bank.now()

    await set_clock(bank, closed_at + 5 * YEAR)
    assert await shred_after_retention(bank) == 0
    assert (await partner_desk.get(closed_path))["email"] == "cfo@hidden.example"
    await set_clock(bank, closed_at + 6 * YEAR)
    assert [await shred_after_retention(bank) for _ in range(2)] == [1, 0]

    shown = await partner_desk.get(closed_path)
    assert (shown["name"], shown["email"], shown["address"]) == ("Acme", None, None)
    assert (await partner_desk.get(open_path))["email"] == "cfo@hidden.example"
    entry = "SELECT resource_id, actor FROM audit_entry WHERE customer_id = $1 AND action = 'data_key.shredded'"
    assert tuple(await bank.pool.fetchrow(entry, closed)) == (str(closed), "SYSTEM")
    report = await verified(bank)
    assert (report.is_clean, report.checked["data_key_shredded"]) == (True, 1), report.findings[:3]
    await partner_desk.refused(
        "POST",
        f"/api/v1/customers/{closed}/documents/WIRE_COUNTERPARTY_VERIFICATION/file/",
        PAGE,
        headers=sent(),
        status=409,
        code="customer-not-open",
    )
