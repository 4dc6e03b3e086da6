"""Files of the rails and their messages: every damaged row is named by its check."""

from contextlib import suppress

import asyncpg
import pytest
from tests.support.damage import checks_of, report_of, undetected

from billfold.payments.fedwire import checks as fedwire_checks
from billfold.payments.files import checks as file_checks
from billfold.verify.fingerprints import check_fingerprints

CHECKS = (check_fingerprints, checks_of(file_checks, fedwire_checks))


async def test_undamaged_rail_files_verify_clean(rails):
    assert (await report_of(rails, *CHECKS)).is_clean


@pytest.mark.parametrize(
    "where",
    [
        "direction = 'OUT' AND rail = 'WIRE' AND (report->>'messages')::int > 1",
        "direction = 'IN' AND rail = 'WIRE' AND name LIKE 'fed-payment-%'",
    ],
)
async def test_verify_reports_a_damaged_rail_file(rails, where):
    # When it was stored and processed is shown to the operator only.
    undetectable = ["file_id", "created_at", "done_at"]
    # A file of one message that is gone is not told from a message that came in none.
    undetectable += ["report"] if "OUT" in where else ["deleted", "rail", "direction"]
    assert await undetected(rails, "rail_file", *CHECKS, where=where, undetectable=undetectable) == []


async def test_verify_reports_a_removed_or_altered_rail_file(rails):
    for damage in (
        "DELETE FROM rail_file WHERE direction = 'OUT' AND rail = 'WIRE'",
        "UPDATE rail_file SET rail = 'X' WHERE rail = 'WIRE'",
        "UPDATE rail_file SET direction = 'OUT' WHERE direction = 'IN'",
    ):
        transaction = rails.transaction()
        await transaction.start()
        with suppress(asyncpg.IntegrityConstraintViolationError):  # refused: the row is protected
            await rails.execute(damage)
            report = await report_of(rails, *CHECKS)
            assert "rail_file" in {each.table for each in report.findings}, damage
        await transaction.rollback()


@pytest.mark.parametrize(
    ("where", "undetectable"),
    [
        ("kind = 'pacs.008' AND file_id IS NOT NULL AND right(imad, 6) <> '000001'", ("message_id",)),
        ("kind = 'pacs.008' AND file_id IS NULL", ("imad", "sent_at", "file_id")),
        ("kind = 'camt.056'", ("message_id", "kind", "wire_id", "customer_id", "send_at", "imad")),
        (
            "kind = 'pacs.004' AND customer_id = (SELECT bank_customer_id FROM bank)",
            ("message_id", "send_at", "deleted", "imad"),
        ),
    ],
    ids=["sent", "waiting", "request", "of the house"],
)
async def test_verify_reports_a_damaged_fedwire_message(rails, where, undetectable):
    assert await undetected(rails, "wire_message", *CHECKS, where=where, undetectable=undetectable) == []
