"""The rows of a batch are written in one call or by COPY, with the same result."""

from uuid import UUID

import msgspec
import pytest
from tests.ledger.engine.test_engine import counts, payment
from tests.support.events import notified
from tests.support.oauth import member
from tests.support.rights_of_code import is_stored
from tests.support.whole_bank import PARTNER, expect_clean

from billfold.accounts.counterparties.commands import AddCounterparty, UpdateCounterparty
from billfold.accounts.pockets.commands import OpenPocket, SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import UpdatePortal
from billfold.audit import store
from billfold.audit.rules import EntryFilter
from billfold.ledger.book.postings import StoredEntry
from billfold.ledger.commands import commands
from billfold.ledger.engine import write_batch
from billfold.ledger.engine.write_batch import LEDGER_BOOK_TABLES
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.database.rows import Row
from billfold.platform.errors import BillfoldError
from billfold.verify.runner import verify_bank

_NOT_ROWS = 4
"""The heads, bases, counters and scheduled jobs that `ledger_book` takes before the rows."""
_TAKEN = """
SELECT string_agg(a.attname, ',' ORDER BY a.attnum)
  FROM pg_proc p CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY AS taken(type, nth)
  JOIN pg_type t ON t.oid = taken.type JOIN pg_type e ON e.oid = t.typelem
  JOIN pg_attribute a ON a.attrelid = e.typrelid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE p.proname = 'ledger_book' GROUP BY taken.nth ORDER BY taken.nth
"""


async def test_batch_write_columns_match_the_fields_of_the_rows(conn):
    taken = [row[0] for row in await conn.fetch(_TAKEN)][_NOT_ROWS:]
    columns = {row.table: ",".join(row.__struct_fields__) for row in Row.__subclasses__() if is_stored(row)}
    columns["journal_entry"] = ",".join(StoredEntry.__struct_fields__)
    assert taken == [columns[table] for table in LEDGER_BOOK_TABLES]


async def left_by(bank, command):
    before = await counts(bank)
    answer = await bank.engine.submit(command)
    assert answer.outcome["status"] == "COMPLETED"
    return {table: count - before[table] for table, count in (await counts(bank)).items()}


@pytest.mark.parametrize("few", [0, 60])
async def test_a_payment_writes_verified_rows_in_single_call_and_batch_mode(bank, new_holder, monkeypatch, few):
    payer, payee = await new_holder(), await new_holder(weeks=26)
    await payer.deposit(50_000_00)
    monkeypatch.setattr(write_batch, "SINGLE_CALL_MAX_BOOKS", few)

    left = await left_by(bank, payment(payer, payee, 1_000_00))

    assert {table: count for table, count in left.items() if count} == {
        "account": 5,
        "journal_entry": 2,
        "posting": 8,
        "trade": 2,
        "transaction": 2,
        "event": 2,
        "command": 1,
        "chain_entry": 2,
        "pocket_version": 2,
        "transfer": 1,
        "directory": 1,
    }
    await expect_clean(bank)


ACME = Origin(kind="PARTNER", name="acme", ip_address="192.0.2.7", user_agent="curl/8")


@pytest.fixture
def submit_command(bank):
    async def submit(kind, holder, /, *, key=None, origin=ACME, **fields):
        command = kind(caller="test", key=key or ids.new(), customers=(holder.customer_id,), origin=origin, **fields)
        try:
            return (await bank.engine.submit(command)).outcome
        except BillfoldError as refused:
            return refused.code

    return submit


async def log_of(bank, holder):
    wanted = EntryFilter(customer_id=holder.customer_id)
    return await store.list_entries(bank.pool, wanted, descending=False, limit=100)


def open_pocket(name="Second"):
    return {"partner_id": PARTNER, "name": name, "deposit_weeks": 13, "reinvestment_weeks": None}


async def test_a_command_is_audited_with_its_origin_and_outcome(bank, new_holder, submit_command):
    holder = await new_holder()
    outcome = await submit_command(OpenPocket, holder, **open_pocket())
    pocket_id = UUID(outcome["pocket_id"])
    await submit_command(UpdatePocket, holder, pocket_id=pocket_id, name="Third")
    await submit_command(UpdatePocket, holder, pocket_id=pocket_id, close_for="not needed")
    await submit_command(UpdatePortal, holder, portal_id=holder.portal_id, close=True)
    rows = await log_of(bank, holder)
    assert [(row.action, row.resource_id, row.outcome) for row in rows] == [
        ("pocket.created", str(pocket_id), "SUCCESS"),
        ("pocket.updated", str(pocket_id), "SUCCESS"),
        ("pocket.closed", str(pocket_id), "SUCCESS"),
        ("portal.closed", str(holder.portal_id), "SUCCESS"),
    ]
    assert msgspec.json.decode(rows[0].details) == {"name": "Second", "deposit_weeks": 13}
    assert (rows[0].actor_name, rows[0].ip_address, rows[0].user_agent) == ("acme", "192.0.2.7", "curl/8")


async def test_a_refused_command_is_audited_as_a_failure(bank, new_holder, submit_command):
    holder = await new_holder()
    await holder.deposit(100_00)
    assert await submit_command(UpdatePocket, holder, pocket_id=holder.pocket_id, close_for="x") == "pocket-not-empty"
    assert await submit_command(UpdatePocket, holder, pocket_id=ids.new(), name="x") == "not-found"
    first, second = await log_of(bank, holder)
    assert (first.action, first.outcome) == ("pocket.closed", "FAILURE")
    assert msgspec.json.decode(first.details)["refused"] == "pocket-not-empty"
    assert msgspec.json.decode(second.details)["refused"] == "not-found"


async def test_the_end_of_reinvestment_is_audited(bank, new_holder, submit_command):
    holder = await new_holder()
    fields = {"pocket_id": holder.pocket_id, "keep_reinvestment": False}
    await submit_command(UpdatePocket, holder, reinvestment_weeks=None, **fields)
    (row,) = await log_of(bank, holder)
    assert msgspec.json.decode(row.details) == {"reinvestment_weeks": None}


async def test_a_repeated_command_is_audited_once(bank, new_holder, submit_command):
    holder, key = await new_holder(), ids.new()
    for _ in range(3):
        await submit_command(OpenPocket, holder, key=key, **open_pocket())
    assert len(await log_of(bank, holder)) == 1


async def test_a_command_without_origin_is_not_audited(bank, new_holder, submit_command):
    holder = await new_holder()
    await holder.deposit(100_00)
    await submit_command(SetPocketState, holder, origin=None, pocket_id=holder.pocket_id, status="FROZEN")
    assert await log_of(bank, holder) == []


async def test_the_audit_log_of_an_active_bank_verifies_clean(bank, new_holder, submit_command):
    holder = await new_holder()
    for n in range(5):
        await submit_command(OpenPocket, holder, **open_pocket(f"Pocket {n}"))
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
        of_bank = await conn.fetchval(
            "SELECT count(*) FROM audit_entry WHERE resource_type IN ('market', 'agreements')"
        )
    assert report.is_clean, report.findings
    assert report.checked["audit_entry"] - of_bank == 5


async def test_counterparty_changes_are_audited_for_the_team(bank, new_holder, submit_command):
    holder, payee = await new_holder(), await new_holder()
    await member(bank.pool, holder.customer_id)
    made = await submit_command(
        AddCounterparty,
        holder,
        counterparty_name={"type": "business", "business_name": "A holder"},
        display_name="Landlord",
        holder="A holder",
        type="on_us",
        details={"account_number": "700000000000"},
        target_customer_id=payee.customer_id,
        target_pocket_id=payee.pocket_id,
    )
    gone = {"counterparty_id": UUID(made["counterparty_id"])}
    await submit_command(UpdateCounterparty, holder, display_name="Owner", rename=True, **gone)
    await submit_command(UpdateCounterparty, holder, unlink=True, **gone)
    await submit_command(UpdateCounterparty, holder, unlink=True, **gone)
    assert await notified(bank) == [
        ("COUNTERPARTY_STATUS_CHANGED", "The counterparty Landlord was linked."),
        ("COUNTERPARTY_STATUS_CHANGED", "The counterparty A holder was unlinked."),
    ]


AUDITED = [kind for kind in commands() if kind.audit is not None]


@pytest.mark.parametrize("kind", AUDITED, ids=lambda kind: kind.__name__)
def test_audited_fields_exist_on_their_command(kind):
    assert all(hasattr(kind, each) for each in kind.audit.fields)
