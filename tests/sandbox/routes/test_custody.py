"""Bills are received from and delivered to another custodian over HTTP."""

from datetime import date
from uuid import UUID

import pytest
from tests.support.whole_bank import expect_clean

from billfold.platform import ids
from billfold.platform.dates import et_instant
from billfold.sandbox.control.clock_stepper import ClockStepper

PATH = "/api/v1/sandbox/security-transfer/"
BILL = "912797PT8"


@pytest.fixture
def body(pocket):
    return {
        "account_id": pocket["pocket_id"],
        "direction": "IN",
        "cusip": BILL,
        "quantity": 50,
        "counterparty_name": "Harbor Custody",
    }


async def trades(bank, pocket):
    rows = await bank.pool.fetch(
        "SELECT incoming, units, tax_basis FROM trade WHERE pocket_id = $1 ORDER BY entry_no",
        UUID(pocket["pocket_id"]),
    )
    return [tuple(row) for row in rows]


async def until(bank, day, hour=10):
    await ClockStepper(bank).set_to(et_instant(day, hour))


async def test_a_sandbox_bill_receipt_under_one_key_is_booked_once_with_its_cost(bank, client, pocket, body):
    key = ids.new()
    told = body | {"acquired_on": "2025-05-29", "cost_usdc": 4_950_00}
    for _ in range(2):
        answer = await client.post(PATH, told, key=key)
        assert (answer.status_code, answer.content) == (202, b""), answer.text
    assert await trades(bank, pocket) == [(True, 50, 4_950_00)]
    await expect_clean(bank)


async def test_a_refused_sandbox_delivery_returns_the_bills(bank, client, pocket, body):
    await client.post(PATH, body | {"cost_usdc": 4_950_00})
    await until(bank, date(2025, 6, 3))
    leaving = {"direction": "OUT", "quantity": 20}
    assert (await client.post(PATH, body | leaving)).status_code == 202
    refused = leaving | {"counterparty_name": "We refuse everything"}
    assert (await client.post(PATH, body | refused)).status_code == 202
    await until(bank, date(2025, 6, 3), 11)
    moved = await trades(bank, pocket)
    assert [row[:2] for row in moved] == [(True, 50), (False, 20), (False, 20), (True, 20)]
    assert moved[2][2] == moved[3][2]
    states = await bank.pool.fetch("SELECT status, reason FROM security_transfer ORDER BY 1")
    assert [tuple(row) for row in states] == [
        ("COMPLETED", None),
        ("COMPLETED", None),
        ("REJECTED", "SAFE Unknown account"),
    ]
    await expect_clean(bank)
