"""Columns of personal data: sealed when written, opened when read, proved by `verify`."""

from uuid import UUID

from tests.support.whole_bank import VAULT

from billfold.data_keys.keys import DataKeys
from billfold.verify.runner import verify_bank

ADDRESS = {"street_address": "7 Hidden Lane", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}
CONTACT = {"email": "cfo@hidden.example", "phone_number": "+12125550123", "address": ADDRESS}


async def verified(bank):
    async with bank.pool.acquire() as conn:
        return await verify_bank(conn, market=bank.market, vault=VAULT)


async def customer_with_contact(partner_desk, name):
    made = await partner_desk.post("/api/v1/sandbox/customers/", {"name": name})
    path = f"/api/v1/customers/{made['id']}/"
    await partner_desk.patch(path, CONTACT)
    return path, UUID(made["id"])


async def test_a_customer_profile_is_encrypted_and_verify_reports_a_moved_one(partner_desk):
    bank = partner_desk.bank
    (path, first), (_, second) = [await customer_with_contact(partner_desk, name) for name in ("Acme", "Beta")]

    shown = await partner_desk.get(path)
    assert {name: shown[name] for name in ("email", "phone_number")} == {
        name: CONTACT[name] for name in ("email", "phone_number")
    }
    assert shown["address"]["street_address"] == "7 Hidden Lane"
    stored = await bank.pool.fetch("SELECT profile FROM customer")
    assert not [row for row in stored if "hidden" in row["profile"].lower()]
    assert (await verified(bank)).is_clean

    moved = await bank.pool.fetchval("SELECT profile FROM customer WHERE customer_id = $1", second)
    await bank.pool.execute("UPDATE customer SET profile = $2 WHERE customer_id = $1", first, moved)
    report = await verified(bank)
    assert [(each.table, each.key["customer_id"]) for each in report.findings] == [("customer", first)]
    await bank.pool.execute("UPDATE customer SET profile = '{}' WHERE customer_id = $1", first)


async def test_shredded_contact_details_are_null_and_counted_by_verify(partner_desk):
    bank = partner_desk.bank
    path, customer_id = await customer_with_contact(partner_desk, "Acme")

    await bank.ports[DataKeys].shred(bank.pool, customer_id, await bank.now())

    shown = await partner_desk.get(path)
    assert (shown["email"], shown["address"], shown["name"]) == (None, None, "Acme")
    report = await verified(bank)
    assert report.is_clean
    assert report.checked["data_key_shredded"] == 1
