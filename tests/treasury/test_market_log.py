"""Changes of the market's tables outside of the bank's commands: `verify` names the table and the row."""

import asyncio
from datetime import UTC, date, datetime

import pytest
from tests.fixtures.cli import fetch
from tests.support.damage import undetected
from tests.support.whole_bank import VAULT

from billfold.bills.imports import import_strike
from billfold.bills.store import CalendarOverride, save_override
from billfold.bills.types import PriceStrike
from billfold.ledger.types import Origin
from billfold.treasury.market_log import KEYS, MARKET_LOG, check_market, market_change, record_strike

HEADER = "Date,4 WEEKS BANK DISCOUNT,4 WEEKS COUPON EQUIVALENT\n"


@pytest.mark.parametrize("table", KEYS)
async def test_verify_reports_a_changed_or_deleted_market_row(damaged_conn, table):
    async with market_change(damaged_conn, VAULT, Origin.operator()):
        await save_override(damaged_conn, CalendarOverride(date(2025, 11, 28), "open", None, "closed", "Mourning"))
    struck_at = datetime(2025, 6, 2, 14, tzinfo=UTC)
    await import_strike(damaged_conn, PriceStrike(struck_at.date(), struck_at, struck_at, ()))
    await record_strike(damaged_conn, VAULT, Origin.operator(), struck_at)
    assert await undetected(damaged_conn, table, check_market) == []


@pytest.fixture
def first_bad_row(founded, database_dsn):
    """Change rows outside of the commands; return the first finding of `verify`."""

    def call(*damages):
        for damage in damages:
            asyncio.run(fetch(database_dsn, damage))
        status, said = founded("verify")
        return said.partition("The first bad row is in ")[2] if status else "clean"

    return call


def test_verify_proves_market_rows_written_by_commands_and_reports_added_ones(founded, first_bad_row, tmp_path):
    rates = tmp_path / "rates.csv"
    for day in ("19", "20"):
        rates.write_text(f"{HEADER}10/{day}/2026,3.95,4.01\n")
        assert founded("market", "import", "--rates", str(rates))[0] == 0
        for words in (("--closes", "13:00", "--reason", "Early"), ("--fed", "open", "--reason", "Open"), ("--remove",)):
            assert founded("calendar", "override", "2026-11-27", *words)[0] == 0
    assert first_bad_row() == "clean"
    # A day of rates that was never imported, and one that was withdrawn.
    added = first_bad_row("INSERT INTO bill_rate VALUES ('2026-10-21', 4, 1, 1)")
    assert added.startswith("bill_rate: bill_rate(day=2026-10-21): no import left its fingerprint")
    rates.write_text(f"{HEADER}10/22/2026,3.95,4.01\n")
    assert founded("market", "import", "--rates", str(rates))[0] == 0
    assert founded("migrate", "up")[0] == 0
    assert first_bad_row() == added
    withdrawn = first_bad_row("DELETE FROM bill_rate WHERE day IN ('2026-10-20', '2026-10-21')")
    assert withdrawn.startswith("bill_rate: bill_rate(day=2026-10-20): it has a fingerprint, but the row is missing")


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (
            "INSERT INTO calendar_override VALUES ('2026-11-27', NULL, '03:00', NULL, 'Early')",
            "calendar_override: calendar_override(day=2026-11-27)",
        ),
        ("DELETE FROM bill_rate", "bill_rate: bill_rate(day=2023-01-03)"),
        (
            "UPDATE security SET maturity = maturity + 7 WHERE cusip = '912797PN1'",
            "security: security(cusip=912797PN1)",
        ),
    ],
)
def test_verify_reports_a_market_that_cannot_be_compared_with_the_ledger(first_bad_row, damage, named):
    assert first_bad_row(damage).startswith(named)


def test_the_market_of_an_earlier_release_is_proved_from_its_migration(founded, first_bad_row):
    log = f"WHERE customer_id = '{MARKET_LOG}'"
    emptied = ("ALTER TABLE audit_entry DISABLE TRIGGER ALL", f"DELETE FROM audit_entry {log}")
    said = first_bad_row(*emptied, f"DELETE FROM audit_chain_head {log}")
    assert said.startswith(f"audit_entry: audit_entry(customer_id={MARKET_LOG}, entry_no=1): the log of the market")
    assert founded("migrate", "up")[0] == 0
    assert first_bad_row() == "clean"
    assert first_bad_row("UPDATE auction SET price_micros = price_micros + 1 WHERE cusip = '912797PN1'").startswith(
        "auction: auction(cusip=912797PN1, issue_date=2025-02-13): it differs from its last fingerprint"
    )
