"""Migration 0007: a bank that has traded with dealers before it has an instruction of each execution after it."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from billfold.migrations import runner
from billfold.trading.settlement.checks import CHECKS
from billfold.trading.settlement.types import instruction_id_of

BANK = UUID(int=1)
# Tuesday is open; Monday's close has settled what was due by then. Each: number, what it replaces, side, units, cents,
# settlement date, business date.
EXECUTIONS = (
    (1, None, "BUY", 100, 9_900_00, "2025-06-02", "2025-05-30"),
    (2, None, "SELL", 40, 3_960_00, "2025-06-03", "2025-06-02"),
    (3, None, "BUY", 10, 990_00, "2025-06-02", "2025-05-30"),
    (4, 3, "BUY", 9, 891_00, "2025-06-02", "2025-06-03"),
    (5, None, "BUY", 7, 693_00, "2025-06-02", "2025-05-30"),
    (6, 5, "BUY", 7, 693_00, "2025-06-02", "2025-06-02"),
)
BUSTS = {6}
_OLD_BANK = """
SET session_replication_role = replica;
INSERT INTO ledger_head (customer_id, booked_at, business_date) VALUES ('{bank}', now(), '2025-06-03');
INSERT INTO account (customer_id, account_no, kind, asset, debits, credits)
VALUES ('{bank}', 1, 'dealer:jpm', 'CUSIP', 0, 41), ('{bank}', 2, 'dealer:jpm', 'USD', 405900, 0);
"""
_EXECUTION = """
INSERT INTO execution
SELECT $1, $2, $2, 'jpm', $2::uuid::text, $3, $4, $5, 'CUSIP', $6::bigint, 99000000, $7::bigint, $8::text::date, now(),
       $9::text::date, now(), 1
"""


@pytest.fixture
async def upgraded(empty_conn, tmp_path):
    """A bank that was migrated from the schema before. What is open: 40 sold, and 1 less of a correction."""
    for step in runner.read_migrations()[:6]:
        for way in ("up", "down"):
            shutil.copy(Path(runner.__file__).with_name(f"{step.name}.{way}.sql"), tmp_path)
    await runner.up(empty_conn, folder=tmp_path)
    await empty_conn.execute(_OLD_BANK.format(bank=BANK))
    for number, corrects, side, units, cents, settles_on, day in EXECUTIONS:
        kind = "BUST" if number in BUSTS else "CORRECTION" if corrects else "FILL"
        ids = BANK, UUID(int=number), kind, corrects and UUID(int=corrects)
        await empty_conn.execute(_EXECUTION, *ids, side, units, cents, settles_on, day)
    await runner.up(empty_conn)
    return empty_conn


async def test_executions_settled_by_date_stay_settled_and_open_ones_are_sent_after_the_upgrade(upgraded):
    rows = await upgraded.fetch("SELECT * FROM settlement_instruction ORDER BY execution_id, settled_units")
    assert [(row["execution_id"], row["instruction_id"]) for row in rows[:-1]] == [
        (UUID(int=number), instruction_id_of(UUID(int=number))) for number, *_ in EXECUTIONS if number not in BUSTS
    ]
    assert [(row["status"], row["units"], row["settled_units"], row["withdrawn"]) for row in rows] == [
        ("SETTLED", 100, 100, False),
        ("NEW", -40, 0, False),
        ("SETTLED", 10, 10, True),
        ("NEW", 9, 0, False),
        ("CANCELLED", 7, 0, True),
        ("NEW", -10, 0, False),
    ]
    sent = await upgraded.fetch("SELECT object_id FROM scheduled_job WHERE kind = 'settlement-send'")
    assert {each for (each,) in sent} == {row["instruction_id"] for row in rows if row["status"] == "NEW"}


async def test_the_checks_of_settlement_find_nothing_in_an_upgraded_bank(upgraded):
    for check in CHECKS:
        assert await upgraded.fetch(check.sql) == [], check
