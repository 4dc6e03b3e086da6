"""Monthly statements of every Pocket of a bank in which a bit of everything has happened."""

import asyncio
import io
from uuid import uuid4

import pytest
from pypdf import PdfReader
from tests.support.databases import as_owner
from tests.support.whole_bank import close_bank, open_bank

from billfold.platform.errors import InvariantError
from billfold.platform.money import format_usd
from billfold.reports.downloads import get_file, open_file
from billfold.reports.proofs import signed_files
from billfold.reports.proofs.signatures import DOCUMENT, SignedManifest, list_public_keys, verify
from billfold.reports.statements import brokerage, contents, store, worker
from billfold.reports.statements.store import Month, StatementRow
from billfold.reports.statements.worker import StatementMaker, correct_statements, make_statements, print_again

MONTHS = ("2025-06", "2025-07")
_NAMES = ", ".join(StatementRow.__struct_fields__)
_AMOUNTS = {
    "BANK": "SELECT amount FROM transaction WHERE pocket_id = $1 AND (swept OR type <> 'CARD')",
    "BROKERAGE": "SELECT notional FROM trade WHERE pocket_id = $1",
}
_IN_MONTH = "to_char({} AT TIME ZONE 'America/New_York', 'YYYY-MM') = $2"
_CLOSE_SOME = """
UPDATE pocket SET status = 'CLOSED', closed_at = '2025-06-20T12:00Z'
 WHERE pocket_id IN (SELECT pocket_id FROM pocket WHERE opened_at < '2025-06-20T12:00Z' ORDER BY pocket_id LIMIT 3)
"""
_PLACES = {"BANK": "booked_at", "BROKERAGE": "traded_at"}


@pytest.fixture
async def bank(pg_server, lived_bank):
    dsn = await pg_server.create_database(f"statements_{uuid4().hex}", template=lived_bank)
    opened = await open_bank(dsn)
    yield opened
    await close_bank(opened)


async def rows_of(bank):
    found = await bank.pool.fetch(f"SELECT {_NAMES} FROM statement ORDER BY pocket_id, type, key, version")
    return [StatementRow(**row) for row in found]


async def bytes_of(bank, row):
    file = await get_file(bank.pool, row.customer_id, row.statement_id)
    return b"".join([part async for part in await open_file(bank, file)])


def text_of(pdf):
    return " ".join(" ".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages).split())


async def figures_of(bank, pdf):
    """Return what the bank signed of a statement."""
    keys = await list_public_keys(bank.pool)
    signed, _ = verify(signed_files.read(pdf).proof or "", keys, DOCUMENT, SignedManifest)
    return signed.manifest.figures


async def moved_amounts(bank, row):
    """Return what the ledger moved in a Pocket in a month, as statements show it."""
    query = f"{_AMOUNTS[row.type]} AND {_IN_MONTH.format(_PLACES[row.type])}"
    return [format_usd(amount) for (amount,) in await bank.pool.fetch(query, row.pocket_id, row.key)]


async def test_monthly_statements_are_created_once_continue_the_last_and_match_the_ledger(bank):
    await bank.pool.execute(_CLOSE_SOME)
    makers = StatementMaker(), StatementMaker()
    assert max(await asyncio.gather(*(maker(bank) for maker in makers))) > 0
    rows = await rows_of(bank)
    assert await StatementMaker()(bank) == 0
    assert {row.key for row in rows} == set(MONTHS)
    assert await store.list_unfinished(bank.pool, await bank.now()) == []
    status = {row["pocket_id"]: row["status"] for row in await bank.pool.fetch("SELECT pocket_id, status FROM pocket")}
    late = {
        row.pocket_id for row in rows if row.key == MONTHS[1] and row.type == "BANK" and await moved_amounts(bank, row)
    }
    closed = {pocket_id for pocket_id, each in status.items() if each == "CLOSED"}
    assert late & closed, "one of the closed Pockets moves"
    assert closed - late, "and one does not"
    for key, expected in ((MONTHS[0], status.keys()), (MONTHS[1], status.keys() - closed | late)):
        assert {row.pocket_id for row in rows if row.key == key} == expected
    closing = {(row.pocket_id, row.type): row.closing for row in rows if row.key == MONTHS[0]}
    for row in rows:
        pdf = await bytes_of(bank, row)
        text = text_of(pdf)
        assert row.opening == (0 if row.key == MONTHS[0] else closing[row.pocket_id, row.type])
        assert f"{format_usd(row.closing)}" in text
        for amount in await moved_amounts(bank, row):
            assert amount in text, (row, amount)
        cash = [each.value for each in await figures_of(bank, pdf) if each.label.endswith("Cash")]
        assert not [each for each in cash if each.startswith("-")], "money is raised before it is paid"
        if row.pocket_id == rows[0].pocket_id:
            assert await print_again(bank, row) == pdf


async def test_a_statement_with_too_many_lines_is_summarized_by_day_with_the_same_balance(bank, monkeypatch):
    (customer_id,) = await bank.pool.fetchrow("SELECT customer_id FROM trade GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")
    await make_statements(bank, customer_id, Month.parse(MONTHS[0]))
    for module in (contents, brokerage):
        monkeypatch.setattr(module, "LINES_MAX", 1)
    sums = 0
    for row in await rows_of(bank):
        printed, summed = await bytes_of(bank, row), await print_again(bank, row)
        ends = [[each for each in await figures_of(bank, pdf) if " on " in each.label][:2] for pdf in (printed, summed)]
        assert len(ends[0]) == 2
        assert ends[0] == ends[1]
        lines = text_of(summed).count("each is in the")
        sums += 0 < lines < len(await moved_amounts(bank, row))
    assert sums, "one of them is shorter"


async def test_a_corrected_statement_is_a_new_version_and_a_gap_between_months_is_not_published(bank):
    june, july = map(Month.parse, MONTHS)
    (customer_id,) = await bank.pool.fetchrow("SELECT customer_id FROM pocket WHERE closed_at IS NULL LIMIT 1")
    await make_statements(bank, customer_id, june)
    brokerage = [row for row in await rows_of(bank) if row.type == "BROKERAGE"]
    first = max(brokerage, key=lambda row: row.closing)
    await as_owner(bank, "UPDATE statement SET closing = closing - 1 WHERE statement_id = $1", first.statement_id)
    with pytest.raises(InvariantError, match="does not begin where the last one ended"):
        await make_statements(bank, customer_id, july)
    assert {row.key for row in await rows_of(bank)} == {june.key}
    reason = "A price was corrected: 株式会社 \u202e\x07 😀."
    again = await correct_statements(bank, customer_id, first.pocket_id, month=june, reason=reason)
    assert [(row.type, row.key, row.version, row.closing) for row in again] == [
        ("BANK", june.key, 2, 0),
        ("BROKERAGE", june.key, 2, first.closing),
    ]
    assert "version 2" in text_of(await bytes_of(bank, again[1]))
    assert "株式会社" in text_of(await bytes_of(bank, again[1]))
    assert await make_statements(bank, customer_id, july) > 0


async def test_due_work_is_executed_before_reading_a_statement_from_a_replica(bank, monkeypatch):
    await bank.pool.execute("UPDATE ledger_head SET due_at = '2025-06-02T12:00Z' WHERE due_at IS NOT NULL")
    customer_id = await bank.pool.fetchval("SELECT customer_id FROM transaction ORDER BY booked_at LIMIT 1")
    submitted, submit = [], bank.engine.submit

    async def note(command):
        submitted.append(command)
        return await submit(command)

    async def read(reading, work):
        known = list(submitted)
        made = await work(reading)
        assert (bool(known), submitted) == (True, known)
        return made

    monkeypatch.setattr(bank.engine, "submit", note)
    monkeypatch.setattr(worker, "read_current", read)
    assert await make_statements(bank, customer_id, Month.parse(MONTHS[0])) > 0
