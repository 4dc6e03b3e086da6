"""Rows of settlement files and of cash back are damaged one column after the other, and `verify` names each."""

from datetime import date

import asyncpg
import pytest
from tests.support.cards import Program, fee, presentment
from tests.support.damage import checks_of, report_of, undetected

from billfold.payments.cards.cash_back import checks as cash_back_checks
from billfold.payments.cards.settlement import checks as settlement_checks
from billfold.platform import ids
from billfold.verify.fingerprints import check_fingerprints

CHECKS = (checks_of(settlement_checks), checks_of(cash_back_checks), check_fingerprints)


@pytest.fixture
async def owner(bank, bank_dsn, new_holder):
    """A connection that may change everything, to a bank with two files and a month of cash back."""
    program = Program(bank)
    holder = await new_holder()
    await holder.deposit(1_000_00)
    card = await program.card(holder)
    await program.rule(basis_points=150, excluded_categories=["7995"], cap=9_00)
    bought = presentment(card, 100_00)
    await program.send(bought, presentment(ids.new(), 7_00), fee(5))
    await program.send(bought)
    await program.on(date(2025, 7, 1))
    connection = await asyncpg.connect(bank_dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def test_verify_reports_every_damaged_card_settlement_and_cash_back_row(owner):
    assert (await report_of(owner, *CHECKS)).is_clean
    missed = {
        table: found
        for table, undetectable in (
            ("card_settlement_file", ("accepted_at",)),
            ("card_settlement_record", ("reason",)),
            ("cash_back", ()),
        )
        if (found := await undetected(owner, table, *CHECKS, undetectable=undetectable))
    }
    assert missed == {}
    for change in ("UPDATE cash_back_rule SET cap = 1", "DELETE FROM cash_back_rule"):
        with pytest.raises(asyncpg.PostgresError):
            async with owner.transaction():
                await owner.execute(change)
    await owner.execute("SET LOCAL session_replication_role = replica")  # as who may switch triggers off
    assert await undetected(owner, "cash_back_rule", *CHECKS) == []
