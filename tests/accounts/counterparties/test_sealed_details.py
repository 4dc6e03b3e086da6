"""Details of counterparties are stored sealed, and are null when their key was shredded."""

from uuid import UUID

import pytest
from tests.data_keys.test_sealed_columns import verified
from tests.support import payees

from billfold.data_keys.keys import DataKeys

LOOKS_SEALED = "sealed:AzEyMzQ"


def path_of(customer):
    return f"/api/v2/customers/{customer}/counterparties/"


async def test_sealed_looking_text_is_refused_as_an_account_number_and_stored_as_plain_text(world):
    mine, other = [(await world.pocket()).customer for _ in range(2)]
    made = await world.post(path_of(other), payees.wire(wire_instructions="Attn. Ada"))
    stored = await world.bank.pool.fetchrow("SELECT account_number, details FROM counterparty")
    assert stored["account_number"].startswith("sealed:")
    assert "Main" not in stored["details"]
    for text in (LOOKS_SEALED, stored["account_number"]):
        for body, field in (
            (payees.ach(account_number=text), "account_number"),
            (payees.wire(identifier=text), "identifier"),
            (payees.abroad(identifier=text), "identifier"),
            (payees.wallet(wallet_address=text), "wallet_address"),
            ({"type": "on_us", "counterparty_name": payees.ADA, "account_number": text}, "account_number"),
        ):
            await world.invalid("POST", path_of(mine), body, loc=f"body.{field}")
    home = payees.HOME | {"street_address": LOOKS_SEALED}
    sent = payees.wire(wire_instructions=LOOKS_SEALED, institution_name=LOOKS_SEALED, address=home)
    shown = await world.post(path_of(mine), sent)
    assert (shown["wire_instructions"], shown["institution_name"]) == (LOOKS_SEALED, LOOKS_SEALED)
    assert shown["address"]["street_address"] == LOOKS_SEALED
    assert shown == await world.get(f"{path_of(mine)}{shown['id']}/")
    await world.get(f"{path_of(mine)}{made['id']}/", status=404)


@pytest.mark.one_server
async def test_verify_reports_a_number_moved_between_customers_and_a_shredded_number_is_null(world):
    bank, pool = world.bank, world.bank.pool
    first, second = [UUID((await world.pocket()).customer) for _ in range(2)]
    made = [await world.post(path_of(each), payees.ach()) for each in (first, second)]
    move = """
    UPDATE counterparty c SET account_number = o.account_number,
           details = jsonb_set(c.details::jsonb, '{account_number}', to_jsonb(o.account_number))::json
      FROM counterparty o WHERE c.customer_id = $1 AND o.customer_id = $2"""
    was = await pool.fetchrow("SELECT account_number, details FROM counterparty WHERE customer_id = $1", first)
    await pool.execute(move, first, second)
    named = [(each.table, each.key["customer_id"]) for each in (await verified(bank)).findings]
    assert set(named) == {("counterparty", first)}
    await pool.execute("UPDATE counterparty SET account_number = $2, details = $3 WHERE customer_id = $1", first, *was)

    await bank.ports[DataKeys].shred(pool, first, await bank.now())
    shown = await world.get(f"{path_of(first)}{made[0]['id']}/")
    assert (shown["account_number"], shown["routing_number"]) == (None, "021000021")
    older = await world.get(f"/api/v1/customers/{first}/counterparties/")
    assert older["counterparties"][0]["ach"]["account_number"] is None
    assert (await verified(bank)).is_clean
