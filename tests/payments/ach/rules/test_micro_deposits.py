"""Micro-deposits are the bank's: paid from its promotions, and back there when they are returned."""

from uuid import UUID

import pytest
from tests.payments.ach.rules.entries import Entries

from billfold.ledger.book.postings import JournalEntry
from billfold.payments.ach.commands import AchEntry, CollectAch, MarkAchTransmitted, SendMicroDeposits
from billfold.platform.errors import NotFound


def test_a_returned_micro_deposit_goes_back_to_promotions_and_is_collected_by_nobody():
    entries = Entries()
    entries.customers.submit(
        SendMicroDeposits,
        entries.anna,
        counterparty_id=entries.payee_id,
        amounts=(11, 22),
        routing_number="021000021",
        account_number="1",
        account_type="CHECKING",
        party_name="Beta",
        company_name="Bank",
    )
    made = entries.bank.tables[AchEntry][-2:]
    assert [(row.amount, row.sec_code, row.description, row.pocket_id) for row in made] == [
        (11, "PPD", "ACCTVERIFY", None),
        (22, "PPD", "ACCTVERIFY", None),
    ]
    house = entries.book.house
    assert (entries.owed_by_rail, house["promotionsUSD"].balance) == (33, -33)
    entries.ach_id = made[0].ach_id
    entries.see(status="APPROVED", file_id=UUID(int=1))
    entries.move(MarkAchTransmitted)
    with pytest.raises(NotFound):
        entries.move(CollectAch)
    assert entries.come_back("R03")["status"] == "FAILED"
    assert (entries.owed_by_rail, house["promotionsUSD"].balance) == (22, -22)
    assert entries.last(JournalEntry).kind == "return"
