"""Settlements: each row has its own block of postings in a journal of the bank."""

from tests.support.damage import checks_of, report_of

from billfold.payments.clearing import checks

_COPY = """
INSERT INTO settlement (settles_on, cusip, price_micros, side, closed_on, units, customers_cents, block_cents)
SELECT settles_on, cusip, price_micros + 1, side, closed_on, units, customers_cents, block_cents
  FROM settlement ORDER BY settles_on, cusip, price_micros, side LIMIT 1 RETURNING *
"""


async def test_verify_reports_a_settlement_row_matched_by_foreign_postings(damaged_conn):
    check = checks_of(checks)
    assert (await report_of(damaged_conn, check)).is_clean
    copy = await damaged_conn.fetchrow(_COPY)
    (finding,) = (await report_of(damaged_conn, check)).findings
    assert finding.message == "no journal of the bank settles it"
    assert finding.key == {name: copy[name] for name in checks.KEY}
