"""A partner begins with its customers: the same from the same seed, and only once."""

from uuid import UUID

from tests.support.whole_bank import SEED

from billfold.accounts.customers.partner_customers import SANDBOX_CUSTOMER_NAME, create_partner_customers, partner_ids


async def test_enrolling_a_partner_twice_creates_its_customers_and_pocket_once(bank):
    places = await create_partner_customers(bank, "acme", "Acme Inc.")
    assert await create_partner_customers(bank, "acme", "Acme Inc.") == places
    assert places == partner_ids(SEED, "acme")
    rows = await bank.pool.fetch(
        "SELECT customer_id, name, role, account_status FROM customer WHERE partner_id = $1 ORDER BY name",
        places.partner_id,
    )
    assert [tuple(row) for row in rows] == [
        (places.own_customer_id, "Acme Inc.", "partner", "OPEN"),
        (places.sandbox_customer_id, SANDBOX_CUSTOMER_NAME, "customer", "PENDING"),
    ]
    pocket = await bank.pool.fetchrow("SELECT * FROM pocket")
    assert pocket["pocket_id"] == places.facilitation_pocket_id
    assert (pocket["type"], pocket["deposit_weeks"]) == ("FACILITATION", 4)


def test_partner_ids_differ_between_partners():
    ids_of = {slug: partner_ids(SEED, slug) for slug in ("acme", "contoso")}
    every = [each for places in ids_of.values() for each in places]
    assert len(set(every)) == 10
    assert all(isinstance(each, UUID) for each in every)
