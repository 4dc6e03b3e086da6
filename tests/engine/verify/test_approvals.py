"""What was approved by the wrong people, or not at all, is named by the proof."""

import pytest
from tests.interfaces.customer_api.approving import (
    REQUESTS,
    decide,
    funded,
    manager,
    on_us,
    other,
)
from tests.interfaces.customer_api.conftest import app, desk, desks, world
from tests.whole_bank import bank

from billfold.engine.verify import verify_bank

__all__ = ["app", "bank", "desk", "desks", "funded", "manager", "other", "world"]

DAMAGES = {
    "its hash is of something else": "UPDATE transfer_request SET content_hash = sha256('x')",
    "it was approved by fewer than it needs": "UPDATE review SET voided_at = now()",
    "the audit log knows of nobody who said so": "UPDATE review SET decision = 'DENIED'",
    "it is about the reviewer's own request": "UPDATE transfer_request q SET user_id = v.user_id "
    "FROM review v WHERE v.request_id = q.request_id",
    "it carries out what nobody approved": "UPDATE transfer_request SET status = 'DENIED'",
}


@pytest.fixture
async def approved(desk, manager, funded, other):
    """A transfer that was approved and carried out."""
    made = await desk.post(REQUESTS, on_us(funded, 1_00, to=other))
    await decide(manager, made)
    return made


async def test_the_proof_names_what_was_not_approved_as_it_says(desk, approved):
    bank = desk.bank
    async with bank.pool.acquire() as conn:
        for wrong, damage in DAMAGES.items():
            transaction = conn.transaction(isolation="repeatable_read")
            await transaction.start()
            await conn.execute(damage)
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
            assert wrong in {each.wrong for each in report.findings}, wrong
