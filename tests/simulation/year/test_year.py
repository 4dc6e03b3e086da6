"""The end of a year of a few customers; `python -m tests.simulation.year` simulates a whole year."""

from datetime import date

from tests.simulation.year.run import live_and_compare


async def test_documents_agree_with_the_ledger_at_the_end_of_a_year(database_dsn):
    compared = await live_and_compare(database_dsn, customers=2, first_day=date(2024, 10, 31), year=2024, seed=3)
    assert not compared.differences, compared.differences[:5]
    assert set(compared.agreed) >= {"camt.053 of days, bank", "boxes of 1099-INT", "boxes of 1099-B", "earnings"}
