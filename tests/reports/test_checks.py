"""Rows of reports, their files and statements are damaged one column after the other, and `verify` names each."""

import asyncpg
import pytest
from tests.reports.requests.test_routes import TRADES, make_report, report_request
from tests.support.damage import checks_of, report_of, undetected

from billfold.reports import checks
from billfold.reports.statements.worker import StatementMaker

CHECKS = (checks_of(checks, checks, checks), checks.check_rows)
# Nothing says what these were before, nor that a report was there that may have expired. Names and hashes of parts are
# compared with the parts when they are opened; of a wrong closing the next statement is named.
UNDETECTABLE = {
    "report_request": {"deleted", "requested_by", "updated_at", "expires_at", "written_no"},
    "report_format": {"attempts", "due_at", "started_at"},
    "report_file": {"name", "media_type", "created_at"},
    "report_file_part": {"key", "size_bytes", "sha256"},
    "statement": {"written_no", "closing"},
}
WHERE = {
    "report_request": "entry_no = 1",
    "report_file": "proof IS NOT NULL",
    "report_file_part": "file_id IN (SELECT file_id FROM report_format)",
    "statement": "type = 'BROKERAGE'",
}


@pytest.fixture
async def owner(customer_world, bank_dsn):
    """A connection that may change everything, to a bank with two reports and the statements of two months."""
    pocket = await customer_world.funded(100_000_00)
    await make_report(customer_world, report_request(pocket_ids=[pocket.id], **TRADES))
    await customer_world.until("2025-08-01T10:00-04:00")
    days = {"pocket_ids": [pocket.id], "date": "2025-06-30"}
    await make_report(customer_world, report_request("BANK_STATEMENT_REPORT", ["CAMT053", "BAI2"], **days))
    assert await StatementMaker()(customer_world.bank)
    connection = await asyncpg.connect(bank_dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def test_verify_reports_every_damaged_report_and_statement_row(owner):
    assert (await report_of(owner, *CHECKS)).findings == ()
    missed = {
        table: found
        for table in UNDETECTABLE
        if (
            found := await undetected(
                owner, table, *CHECKS, where=WHERE.get(table, "true"), undetectable=UNDETECTABLE[table]
            )
        )
    }
    assert missed == {}
