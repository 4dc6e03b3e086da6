"""Checks of the audit log: `verify` names the first damaged row."""

from datetime import UTC, datetime

import asyncpg
import msgspec
import pytest
from tests.support.whole_bank import VAULT

from billfold.audit import record, seals
from billfold.audit.checks import check_audit
from billfold.audit.rules import NewEntry
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.checks import Findings
from billfold.platform.ids import command_id

NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
ANNA, BERT = (command_id("customer", name) for name in ("Anna", "Bert"))


@pytest.fixture
async def log(database_dsn):
    """A connection of the owner, with triggers disabled, to a sealed log of two customers with five entries each."""
    conn = await asyncpg.connect(database_dsn)
    async with conn.transaction():
        for number in range(5):
            await record.record_all(conn, VAULT, [new_entry(ANNA, number), new_entry(BERT, number)], now=NOW)
        await seals.seal_heads(conn, VAULT, now=NOW)
        await record.record(conn, VAULT, new_entry(ANNA, 5), now=NOW)
    await conn.execute("ALTER TABLE audit_entry DISABLE TRIGGER ALL")
    await conn.execute("ALTER TABLE audit_seal DISABLE TRIGGER ALL")
    yield conn
    await conn.close()


def new_entry(customer_id, number):
    return NewEntry(
        customer_id=customer_id,
        origin=Origin.operator(),
        action="pocket.updated",
        resource_type="pocket",
        details={"number": number},
    )


async def prove(conn, *, vault=VAULT, copy=()):
    found = Findings()
    async with conn.transaction():
        await check_audit(conn, found, vault, copy=copy)
    return found.report()


async def carried_out(conn):
    return await seals.list_seal_lines(conn, 0)


def place_of_first_finding(report):
    assert report.first is not None
    return report.first.table, *report.first.key.values()


async def test_an_unmodified_audit_log_verifies_clean(log):
    report = await prove(log, copy=await carried_out(log))
    assert report.is_clean, report.findings
    assert report.checked == {"audit_entry": 11, "audit_seal": 1}


def update(change, customer_id, number):
    return f"UPDATE audit_entry SET {change} WHERE customer_id = '{customer_id}' AND entry_no = {number}"


def delete(customer_id, numbers):
    return f"DELETE FROM audit_entry WHERE customer_id = '{customer_id}' AND entry_no {numbers}"


COLUMNS = (
    "outcome = 'FAILURE'",
    "details = '{}'",
    "recorded_at = recorded_at + interval '1 us'",
    "actor_name = 'nobody'",
    r"hash = '\x00'",
    "ip_address = '::1'",
)
MOVED_UP = (update("entry_no = 3", BERT, 4), update("entry_no = 4", BERT, 5))
SWAPPED = (update(f"entry_no = {to}", ANNA, number) for number, to in ((2, 99), (4, 2), (99, 4)))
DAMAGED = {
    **{f"altered: {change}": ((update(change, ANNA, 3),), ANNA, 3) for change in COLUMNS},
    "deleted": ((delete(BERT, "= 3"),), BERT, 3),
    "deleted, and those behind it moved up": ((delete(BERT, "= 3"), *MOVED_UP), BERT, 3),
    "swapped": (tuple(SWAPPED), ANNA, 2),
    "tail cut off": ((delete(ANNA, "> 4"),), ANNA, 5),
}


@pytest.mark.parametrize("damage", DAMAGED)
async def test_verify_reports_the_first_altered_deleted_or_swapped_audit_row(log, damage):
    statements, *row = DAMAGED[damage]
    for statement in statements:
        await log.execute(statement)
    assert place_of_first_finding(await prove(log)) == ("audit_entry", *row)


async def test_verify_reports_an_audit_row_moved_to_a_different_customer(log):
    await log.execute(delete(BERT, "= 5"))
    await log.execute(update(f"customer_id = '{BERT}'", ANNA, 5))
    named = {finding.key.get("entry_no") for finding in (await prove(log)).findings}
    assert 5 in named


async def cut(log, customer_id, after):
    """Remove the last entries and adjust the head."""
    await log.execute(delete(customer_id, f"> {after}"))
    if not after:
        await log.execute("DELETE FROM audit_chain_head WHERE customer_id = $1", customer_id)
        return
    await log.execute(
        "UPDATE audit_chain_head h SET entry_no = e.entry_no, hash = e.hash, sealed_no = e.entry_no"
        " FROM audit_entry e WHERE e.customer_id = $1 AND h.customer_id = $1 AND e.entry_no = $2",
        customer_id,
        after,
    )


@pytest.mark.parametrize("after", [0, 3])
async def test_a_truncated_audit_log_is_detected_by_its_seal(log, after):
    await cut(log, BERT, after)
    assert place_of_first_finding(await prove(log)) == ("audit_entry", BERT, after + 1)


async def test_a_truncated_audit_log_without_seals_is_detected_by_the_archive(log):
    copy = await carried_out(log)
    await cut(log, BERT, 3)
    await log.execute("DELETE FROM audit_seal")
    assert place_of_first_finding(await prove(log))[0] == "audit_chain_head"
    await log.execute("UPDATE audit_chain_head SET sealed_no = 0")
    assert (await prove(log)).is_clean
    report = await prove(log, copy=copy)
    assert {finding.table for finding in report.findings} == {"audit_entry", "audit_seal"}


async def test_verify_reports_an_altered_seal(log):
    line = (await carried_out(log))[0]
    altered = line.replace('"entry_no":5', '"entry_no":4')
    await log.execute("UPDATE audit_seal SET line = $1", altered)
    assert place_of_first_finding(await prove(log)) == ("audit_seal", 1)
    assert place_of_first_finding(await prove(log, copy=[line])) == ("audit_seal", 1)


async def test_verify_reports_a_validly_signed_seal_that_breaks_the_chain(log):
    async with log.transaction():
        await record.record(log, VAULT, new_entry(ANNA, 6), now=NOW)
        seal = await seals.seal_heads(log, VAULT, now=NOW)
    assert seal is not None
    assert seal.seal_no == 2
    assert (await prove(log)).is_clean
    forged = seals.format_seal(msgspec.structs.replace(seal, previous="0" * 64), VAULT)
    await log.execute("UPDATE audit_seal SET line = $1 WHERE seal_no = 2", forged)
    assert place_of_first_finding(await prove(log)) == ("audit_seal", 2)


async def test_verify_reports_a_chain_head_falsely_marked_as_sealed(log):
    await log.execute("UPDATE audit_chain_head SET sealed_no = entry_no WHERE customer_id = $1", ANNA)
    assert place_of_first_finding(await prove(log)) == ("audit_chain_head", ANNA)


async def test_verify_reports_a_renumbered_seal(log):
    await log.execute("UPDATE audit_seal SET seal_no = 2")
    assert place_of_first_finding(await prove(log)) == ("audit_seal", 1)


async def test_verify_reports_a_chain_head_that_is_behind_altered_or_missing(log):
    await log.execute("UPDATE audit_chain_head SET entry_no = 5 WHERE customer_id = $1", ANNA)
    assert place_of_first_finding(await prove(log)) == ("audit_entry", ANNA, 6)
    await log.execute(r"UPDATE audit_chain_head SET entry_no = 6, hash = '\x00' WHERE customer_id = $1", ANNA)
    assert place_of_first_finding(await prove(log)) == ("audit_chain_head", ANNA)
    await log.execute("DELETE FROM audit_chain_head WHERE customer_id = $1", ANNA)
    assert place_of_first_finding(await prove(log)) == ("audit_chain_head", ANNA)


async def test_audit_entries_fail_under_a_different_key_and_only_numbers_are_checked_without_one(log):
    report = await prove(log, vault=Vault(bytes(32)))
    assert not report.is_clean
    assert (await prove(log, vault=None)).is_clean
