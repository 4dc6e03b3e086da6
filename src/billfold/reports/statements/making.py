"""Makes the monthly statements of a customer: read, printed, kept, and written down with a notification at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets.history import Boundary, pocket_states_before
from billfold.events.notifications.notify import notify
from billfold.ledger.current_reads import CurrentReads
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id
from billfold.reports.downloads import files
from billfold.reports.downloads import store as downloads
from billfold.reports.downloads.types import KeptFile
from billfold.reports.entries.reader import Wanted, list_entries, read_statement
from billfold.reports.entries.store import position_of
from billfold.reports.entries.types import AccountType, LedgerPosition
from billfold.reports.printing.printing import bank_of
from billfold.reports.printing.recipients import recipient_of
from billfold.reports.printing.signing import Subject, print_signed
from billfold.reports.statements import contents, store
from billfold.reports.statements.bank_contents import PaymentLines
from billfold.reports.statements.brokerage_activity import ActivityLines
from billfold.reports.statements.brokerage_contents import IncomeStates
from billfold.reports.statements.contents import BrokerageReading, Issue
from billfold.reports.statements.types import MONTHLY, Month, StatementRow, StatementType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)
    from billfold.reports.entries.types import AccountStatement
    from billfold.reports.printing.types import PrintedDocument

PDF: Final = "application/pdf"
_FILE_TAIL: Final = 4
_NAMED_MAX: Final = 100


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a statement that is to be made."""

    customer_id: UUID
    pocket_id: UUID
    type: StatementType
    month: Month
    issue: Issue


class MadeStatement(NamedTuple):
    """A version of a statement, and its file before it is written down."""

    row: StatementRow
    file: KeptFile


async def make_statements(bank: Bank, customer_id: UUID, month: Month) -> int:
    """Make the statements of a month that a customer lacks, and notify its team; return how many.

    Raises InvariantError when a statement does not begin where the last one ended: nothing is made then.
    """
    due = await store.list_due(bank.pool, customer_id, month)
    if not due:
        return 0
    issue = await _issue(bank, customer_id, await bank.now())
    drafts = [
        Draft(customer_id=customer_id, pocket_id=each.pocket_id, type=each.type, month=month, issue=issue)
        for each in due
    ]
    return await write_statements(bank, [await _make(bank, each) for each in drafts], f"Statements of {month.name}")


async def correct_statements(
    bank: Bank, customer_id: UUID, pocket_id: UUID, *, month: Month, reason: str
) -> list[StatementRow]:
    """Make another version of the statements of a month, and of the later ones that do not begin where it ends now."""
    rows = list[StatementRow]()
    latest = [await store.get_latest(bank.pool, customer_id, pocket_id, each, month.key) for each in MONTHLY]
    now = await bank.now()
    while latest:
        made = list[MadeStatement]()
        for row in latest:
            issue = await _issue(bank, customer_id, now, version=row.version + 1, reason=reason)
            made.append(await _make(bank, _draft(row, issue)))
        await write_statements(bank, made, f"Corrected statements of {month.name}")
        rows += (each.row for each in made)
        changed = [each.row for each, row in zip(made, latest, strict=True) if each.row.closing != row.closing]
        month = month.next
        following = [
            await store.find_latest(bank.pool, customer_id, pocket_id, each.type, month.key) for each in changed
        ]
        latest = [row for row in following if row is not None]
    return rows


async def print_again(bank: Bank, row: StatementRow) -> bytes:
    """Return a monthly statement as it is printed of what the ledger says today, as far as the statement covers it."""
    issue = await _issue(bank, row.customer_id, row.created_at, version=row.version, reason=row.reason)
    position = await position_of(bank.pool, row.customer_id, row.entry_no)
    statement, document = await _compose(bank, _draft(row, issue), position)
    return await print_signed(bank, document, _subject(statement))


def _subject(statement: AccountStatement) -> Subject:
    account = statement.account
    return Subject(account.customer_id, account.pocket_id, account.name, statement.period.ends_at, statement.position)


async def _issue(
    bank: Bank, customer_id: UUID, made_at: datetime, version: int = 1, reason: str | None = None
) -> Issue:
    recipient = await recipient_of(bank, customer_id)
    return Issue(bank_of(bank.settings), recipient, made_at, version, reason)


def _draft(row: StatementRow, issue: Issue) -> Draft:
    return Draft(
        customer_id=row.customer_id, pocket_id=row.pocket_id, type=row.type, month=Month.parse(row.key), issue=issue
    )


async def _make(bank: Bank, draft: Draft) -> MadeStatement:
    reads = await CurrentReads.begin(bank)
    statement, document = await reads.read(lambda reading: _compose(reading, draft))
    await _require_continuity(bank, draft, statement)
    pdf = await print_signed(bank, document, _subject(statement))
    version = draft.issue.version
    row = StatementRow(
        customer_id=draft.customer_id,
        statement_id=command_id(f"statement:{draft.type}:{draft.month.key}:{version}", draft.pocket_id),
        pocket_id=draft.pocket_id,
        type=draft.type,
        key=draft.month.key,
        version=version,
        reason=draft.issue.reason,
        opening=statement.opening.value,
        closing=statement.closing.value,
        entry_no=statement.position.entry_no,
        created_at=draft.issue.made_at,
    )
    suffix = "" if version == 1 else f"-v{version}"
    name = f"{row.key}-{row.type.lower()}-statement-{statement.account.number[-_FILE_TAIL:]}{suffix}.pdf"
    ids = (row.customer_id, row.statement_id)
    return MadeStatement(row, await files.keep_file(bank, ids, pdf, name=name, media_type=PDF, at=row.created_at))


async def _require_continuity(bank: Bank, draft: Draft, statement: AccountStatement) -> None:
    previous = await store.find_latest(
        bank.pool, draft.customer_id, draft.pocket_id, draft.type, draft.month.previous.key
    )
    if previous is not None and previous.closing != statement.opening.value:
        raise InvariantError(
            "A statement does not begin where the last one ended: correct the last one.",
            pocket_id=draft.pocket_id,
            key=draft.month.key,
            opening=statement.opening.value,
            last_closing=previous.closing,
        )


async def _compose(
    bank: Bank, draft: Draft, position: LedgerPosition | None = None
) -> tuple[AccountStatement, PrintedDocument]:
    month = draft.month
    statement = await read_statement(
        bank,
        Wanted(
            draft.customer_id,
            draft.pocket_id,
            AccountType(draft.type),
            month.first_day,
            month.last_day,
            now=month.due_at,
            position=position,
        ),
    )
    if draft.type == StatementType.BANK:
        lines = PaymentLines()
        async for page in list_entries(bank, statement):
            lines.add(page)
        return statement, contents.compose_bank(statement, lines, draft.issue)
    reading = await _read_brokerage(bank, statement, month)
    return statement, contents.compose_brokerage(statement, reading, bank.market, issue=draft.issue)


async def _read_brokerage(bank: Bank, statement: AccountStatement, month: Month) -> BrokerageReading:
    customer_id, pocket_id = statement.account.customer_id, statement.account.pocket_id
    through = statement.position.entry_no
    instants = (et_instant(month.first_day.replace(month=1), 0), month.starts_at, month.next.starts_at)
    boundaries = [Boundary(customer_id, pocket_id, bank.calendars.business_date(at), at) for at in instants]
    lines = ActivityLines(bank.calendars)
    async for page in list_entries(bank, statement):
        lines.add_entries(page)
    async for trades in store.list_trades(bank.pool, (customer_id, pocket_id), statement.entries_after, through):
        lines.add_trades(trades)
    return BrokerageReading(
        lines=lines,
        costs=await store.costs(
            bank.pool, customer_id, pocket_id, through, [each.security.cusip for each in statement.closing.holdings]
        ),
        days=await store.day_states(bank.pool, customer_id, pocket_id, month),
        states=IncomeStates(*await pocket_states_before(bank.pool, boundaries)),
    )


async def write_statements(bank: Bank, made: Sequence[MadeStatement], title: str) -> int:
    """Write down statements of one customer, all of them or none, and notify its team; return how many were new."""
    unwritten = list[KeptFile]()
    async with bank.pool.acquire() as conn, conn.transaction():
        for row, kept in made:
            if not (await downloads.add_file(conn, kept) and await store.add(conn, row)):
                unwritten.append(kept)  # another process was quicker
        if len(unwritten) < len(made):
            await _notify(bank, conn, [row for row, kept in made if kept not in unwritten], title)
    for kept in unwritten:
        await files.discard(bank, kept)
    return len(made) - len(unwritten)


async def _notify(bank: Bank, conn: Connection, rows: Sequence[StatementRow], title: str) -> None:
    await notify(
        conn,
        bank.vault,
        rows[0].customer_id,
        "STATEMENT_AVAILABLE",
        title=title,
        description=f"{title} can be downloaded: {len(rows)} in all.",
        now=wall_now(),
        metadata={"key": rows[0].key, "statement_ids": [str(row.statement_id) for row in rows[:_NAMED_MAX]]},
    )
