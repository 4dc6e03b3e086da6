"""Makes the statements of finished months, customer by customer, one process at a time.

A crash leaves nothing half made: statements of a customer are inserted together, and the next
process makes the missing ones.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from billfold.accounts.pockets.store import Boundary, pocket_states_before
from billfold.events.changes import STATEMENT_MADE
from billfold.events.notifications.notify import notify
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import PutAside, locked, read_put_aside
from billfold.platform.database.connection import Connection
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.ids import command_id
from billfold.reports import downloads
from billfold.reports.downloads import KeptFile
from billfold.reports.entries.reader import StatementRange, current_position, list_entries, read_current, read_statement
from billfold.reports.entries.store import position_of
from billfold.reports.entries.types import AccountStatement, AccountType, LedgerPosition
from billfold.reports.printing import PrintedDocument, Subject, bank_of, print_signed, recipient_of
from billfold.reports.statements import brokerage, contents, store
from billfold.reports.statements.contents import BrokerageReading, Issue, PaymentLines
from billfold.reports.statements.store import MONTHLY, Month, StatementRow, StatementType

log = structlog.get_logger(__name__)

STATEMENTS_LOCK: Final = 0x57A7_E3E7
"""The advisory lock of the process that makes statements."""
PAUSE_SECONDS: Final = 5.0
_BATCH_SIZE: Final = 200
_KIND: Final = "statements"


class Progress(NamedTuple):
    """The number of statements of a month that were made, and of customers for whom it failed."""

    made: int
    failed: int


class StatementMaker:
    """A task of the worker. It periodically checks for a finished month."""

    def __init__(self) -> None:
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Make the statements that are due; return how many."""
        if monotonic() < self._next_at:
            return 0
        made = 0
        for month in await store.list_unfinished(bank.pool, await bank.now()):
            async with locked(bank.pool, STATEMENTS_LOCK) as conn:
                if conn is None:
                    break
                async for progress in make_month(bank, month):
                    made = max(made, progress.made)
        self._next_at = monotonic() + PAUSE_SECONDS
        return made


async def make_month(bank: Bank, month: Month) -> AsyncIterator[Progress]:
    """Make the missing statements of a month, and yield the progress after each customer.

    A customer whose statements fail is deferred and tried again later; the others are not held up.
    """
    aside = await read_put_aside(bank.pool, _KIND, wall_now())
    made, failed, after = 0, dict[str, Exception](), UUID(int=0)
    turns = asyncio.Semaphore(max(2, os.cpu_count() or 1))  # printing takes a core, without the interpreter's lock

    async def make(customer_id: UUID) -> int:
        async with turns:
            try:
                return await make_statements(bank, customer_id, month)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other customers get theirs
                failed[_item(customer_id, month)] = error
                return 0

    while batch := await store.list_due_customers(bank.pool, month, after, _BATCH_SIZE):
        after = batch[-1]
        for each in asyncio.as_completed([make(one) for one in batch if _item(one, month) not in aside.waiting]):
            made += await each
            yield Progress(made, len(failed))
    await _finish_month(bank, month, aside, failed=failed)
    if made or failed:
        log.info("statements_made", month=month.key, made=made, failed=len(failed))


async def _finish_month(bank: Bank, month: Month, aside: PutAside, *, failed: dict[str, Exception]) -> None:
    of_month = {item: tries for item, tries in aside.due.items() if item.endswith(month.key)}
    await aside._replace(due=of_month).record(bank.pool, failed, wall_now())
    for item, error in failed.items():
        log.error("statements_failed", item=item, error=error_summary(error))
    if not await store.count_due(bank.pool, month):
        await store.finish(bank.pool, month, await bank.now())


def _item(customer_id: UUID, month: Month) -> str:
    return f"{customer_id} {month.key}"


PDF: Final = "application/pdf"
_FILE_TAIL: Final = 4
_NAMED_MAX: Final = 100


class Draft(NamedTuple):
    """A version of a statement to be made."""

    customer_id: UUID
    pocket_id: UUID
    type: StatementType
    month: Month
    issue: Issue


class MadeStatement(NamedTuple):
    """A version of a statement, with its file, before it is inserted."""

    row: StatementRow
    file: KeptFile


async def make_statements(bank: Bank, customer_id: UUID, month: Month) -> int:
    """Make the missing statements of a customer for a month, and notify its team; return how many.

    Raises InvariantError, and makes nothing, if a statement does not begin where the last one ended.
    """
    due = await store.list_due(bank.pool, customer_id, month)
    if not due:
        return 0
    issue = await _issue(bank, customer_id, await bank.now())
    made = [await _make_statement(bank, Draft(customer_id, *each, month, issue)) for each in due]
    return await write_statements(bank, made, f"Statements of {month.name}")


async def correct_statements(
    bank: Bank, customer_id: UUID, pocket_id: UUID, *, month: Month, reason: str
) -> list[StatementRow]:
    """Make a new version of the statements of a month, and of later ones that no longer begin where it ends."""
    rows = list[StatementRow]()
    latest = [await store.get_latest(bank.pool, customer_id, pocket_id, each, month.key) for each in MONTHLY]
    now = await bank.now()
    while latest:
        made = list[MadeStatement]()
        for row in latest:
            issue = await _issue(bank, customer_id, now, version=row.version + 1, reason=reason)
            made.append(await _make_statement(bank, _draft(row, issue)))
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
    """Return a monthly statement printed from today's ledger, up to the statement's last entry."""
    issue = await _issue(bank, row.customer_id, row.created_at, version=row.version, reason=row.reason)
    position = await position_of(bank.pool, row.customer_id, row.entry_no)
    statement, document = await _compose_statement(bank, _draft(row, issue), position)
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
    return Draft(row.customer_id, row.pocket_id, row.type, Month.parse(row.key), issue)


async def _make_statement(bank: Bank, draft: Draft) -> MadeStatement:
    # Executes work that is due by the end of the month, which a replica cannot.
    position = await current_position(bank, draft.customer_id, draft.month.next.starts_at)
    statement, document = await read_current(bank, lambda reading: _compose_statement(reading, draft, position))
    await _require_continuity(bank, draft, statement.opening.value)
    pdf = await print_signed(bank, document, _subject(statement))
    row = StatementRow(
        customer_id=draft.customer_id,
        statement_id=statement_id(draft.pocket_id, draft.type, draft.month.key, draft.issue.version),
        pocket_id=draft.pocket_id,
        type=draft.type,
        key=draft.month.key,
        version=draft.issue.version,
        reason=draft.issue.reason,
        opening=statement.opening.value,
        closing=statement.closing.value,
        entry_no=statement.position.entry_no,
        created_at=draft.issue.made_at,
    )
    return await keep_statement(
        bank, row, pdf, f"{row.key}-{row.type.lower()}-statement-{statement.account.number[-_FILE_TAIL:]}"
    )


def statement_id(pocket_id: UUID, type_: str, key: str, version: int) -> UUID:
    """Return the id of a version of a statement: it is made once, by any worker."""
    return command_id(f"statement:{type_}:{key}:{version}", pocket_id)


async def keep_statement(bank: Bank, row: StatementRow, pdf: bytes, name: str) -> MadeStatement:
    """Store the file of a statement, before its row is inserted."""
    name += ".pdf" if row.version == 1 else f"-v{row.version}.pdf"
    ids = (row.customer_id, row.statement_id)
    return MadeStatement(row, await downloads.keep_file(bank, ids, pdf, name=name, media_type=PDF, at=row.created_at))


async def _require_continuity(bank: Bank, draft: Draft, opening: int) -> None:
    key = draft.month.previous.key
    previous = await store.find_latest(bank.pool, draft.customer_id, draft.pocket_id, draft.type, key)
    if previous is not None and previous.closing != opening:
        values = {"pocket_id": draft.pocket_id, "key": draft.month.key}
        values |= {"opening": opening, "last_closing": previous.closing}
        raise InvariantError("A statement does not begin where the last one ended: correct the last one.", **values)


async def _compose_statement(
    bank: Bank, draft: Draft, position: LedgerPosition
) -> tuple[AccountStatement, PrintedDocument]:
    month = draft.month
    account = (draft.customer_id, draft.pocket_id, AccountType(draft.type))
    wanted = StatementRange(*account, month.first_day, month.last_day, now=month.due_at, position=position)
    statement = await read_statement(bank, wanted)
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
    lines = brokerage.ActivityLines(bank.calendars)
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
        states=brokerage.IncomeStates(*await pocket_states_before(bank.pool, boundaries)),
    )


async def write_statements(bank: Bank, made: Sequence[MadeStatement], title: str) -> int:
    """Insert statements of one customer, all or none, and notify its team; return how many were new."""
    unwritten = list[KeptFile]()
    async with bank.pool.acquire() as conn, conn.transaction():
        for row, kept in made:
            if not (await downloads.add_file(conn, kept) and await store.add(conn, row)):
                unwritten.append(kept)  # another process was faster
        if len(unwritten) < len(made):
            await _notify(bank, conn, [row for row, kept in made if kept not in unwritten], title)
    for kept in unwritten:
        await downloads.discard(bank, kept.parts)
    return len(made) - len(unwritten)


async def _notify(bank: Bank, conn: Connection, rows: Sequence[StatementRow], title: str) -> None:
    now = await bank.now(conn)
    jobs = [ScheduledJob(STATEMENT_MADE, row.statement_id, row.customer_id, now) for row in rows]
    await scheduler.schedule(conn, jobs)
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
