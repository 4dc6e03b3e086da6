"""ACH entries, returns and files: every damaged row is named by its check."""

import pytest
from tests.support.damage import checks_of, report_of, undetected
from tests.support.whole_bank import VAULT

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.payments.ach import checks
from billfold.payments.files.store import open_content, seal_content
from billfold.verify.fingerprints import check_fingerprints

check_ach = checks_of(checks)
# What is said to people, and when it was last touched.
WORDS = ("reason", "updated_at")
ENTRIES = {
    "a credit that was paid": "way = 'ORIGINATION' AND direction = 'CREDIT'"
    " AND status = 'PROCESSED' AND pocket_id IS NOT NULL",
    "a credit that came back": "way = 'ORIGINATION' AND return_code = 'R03'",
    "a debit that came back and was sent again": "times = 2",
    "a debit that was collected": "way = 'ORIGINATION' AND direction = 'DEBIT' AND status = 'PROCESSED'",
    "a credit of the house": "pocket_id IS NULL",
    "a credit that waits for its window": "status = 'APPROVED' AND direction = 'CREDIT'",
    "a debit that a person looks at": "status = 'PENDING'",
    "a debit of somebody else": "way = 'RECEIVING' AND direction = 'DEBIT' AND status = 'PROCESSED'",
    "a debit that was sent back": "way = 'RECEIVING' AND status = 'REJECTED'",
}


async def test_undamaged_ach_rows_verify_clean(rails):
    assert (await report_of(rails, check_fingerprints, check_ach)).is_clean


@pytest.mark.parametrize("where", ENTRIES.values(), ids=ENTRIES)
async def test_verify_reports_a_damaged_ach_entry(rails, where):
    missed = await undetected(rails, "ach_entry", check_fingerprints, check_ach, where=where, undetectable=WORDS)
    assert missed == []


@pytest.mark.parametrize("where", ["true", "customer_id = (SELECT bank_customer_id FROM bank)"])
async def test_verify_reports_a_damaged_ach_return(rails, where):
    # The time of creation changes no money; the house's own entry goes when the next window opens.
    undetectable = ("created_at",) if where == "true" else ("created_at", "due_at", "customer_id")
    assert (
        await undetected(
            rails, "ach_return_entry", check_fingerprints, check_ach, where=where, undetectable=undetectable
        )
        == []
    )


async def test_verify_reports_a_damaged_ach_file(rails):
    assert (
        await undetected(rails, "ach_file", check_fingerprints, check_ach, undetectable=("file_id", "confirmed_at"))
        == []
    )


async def test_verify_reports_an_ach_file_whose_total_differs_from_its_entries(rails):
    transaction = rails.transaction()
    await transaction.start()
    file_id = await rails.fetchval("SELECT file_id FROM ach_file ORDER BY name LIMIT 1")
    bank_id = await rails.fetchval("SELECT bank_customer_id FROM bank")
    bank_key = await DataKeys(FileMasterKey(VAULT)).of(rails, bank_id)
    stored = await rails.fetchval("SELECT content FROM rail_file WHERE file_id = $1", file_id)
    plain = open_content(bank_key, file_id, stored).replace(b"00000142000", b"00000143000")
    await rails.execute(
        "UPDATE rail_file SET content = $2, sha256 = sha256($2), digest = $3 WHERE file_id = $1",
        file_id,
        *seal_content(bank_key, file_id, plain),
    )
    await rails.execute("UPDATE ach_entry SET amount = amount + 1 WHERE file_id = $1", file_id)
    report = await report_of(rails, check_ach)
    await transaction.rollback()
    message = [each.message for each in report.findings if each.table == "ach_file"]
    assert message == ["its file control record differs from its entries"]


WAITS = {
    "ach_entry": ("ach.window", "it waits for a window, and no window is scheduled"),
    "ach_file": ("ach.window", "it is not transmitted, and no window is scheduled"),
}


@pytest.mark.parametrize(("table", "told"), WAITS.items())
async def test_verify_reports_a_pending_ach_entry_without_a_scheduled_job(rails, table, told):
    kind, message = told
    transaction = rails.transaction()
    await transaction.start()
    await rails.execute("DELETE FROM scheduled_job WHERE kind = $1", kind)
    if table == "ach_file":
        await rails.execute("UPDATE ach_file SET confirmed_at = NULL")
        await rails.execute("DELETE FROM ach_entry WHERE status = 'APPROVED'")
    report = await report_of(rails, check_ach)
    await transaction.rollback()
    assert (table, message) in {(each.table, each.message) for each in report.findings}
