"""A delivery that was marked as completed by hand does not count as delivered."""

from uuid import UUID

from tests.support.damage import checks_of, report_of

from billfold.payments.custody import checks
from billfold.payments.custody.rules import DeliverBills, ReceiveBills

BILL = "912797PT8"
CAME, LEFT = (UUID(f"7b111000-0000-4000-8000-00000000000{n}") for n in (1, 2))


async def test_verify_reports_a_security_delivery_marked_done_by_hand(bank, new_holder, bank_dsn):
    holder = await new_holder()
    fields = {"pocket_id": holder.pocket_id, "cusip": BILL, "counterparty_name": "Else", "counterparty_account": "1"}
    await holder.submit(ReceiveBills, holder.customer_id, transfer_id=CAME, units=10, **fields)
    await holder.submit(DeliverBills, holder.customer_id, transfer_id=LEFT, units=4, **fields)
    async with bank.pool.acquire() as conn:
        assert (await report_of(conn, checks_of(checks))).is_clean
        done = "UPDATE security_transfer SET status = 'COMPLETED', ended_at = created_at WHERE transfer_id = $1"
        await conn.execute(done, LEFT)
        first = (await report_of(conn, checks_of(checks))).first
    assert (first.table, first.key["transfer_id"]) == ("security_transfer", LEFT)
    assert "left PENDING" in first.message
