"""The morning: files of statements are reconciled as they arrive, and days without one become breaks.

A statement is compared once the bank has closed its day. It is missing if it has not come by the morning of the next
business day; if it comes later, its break closes itself.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import msgspec
import structlog
from typing_extensions import override

from billfold.identity.operators import Operator, Power, recorded_action
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.payments.files import retries
from billfold.payments.files.inbound import WAIT, InboundFiles
from billfold.payments.files.store import find_file
from billfold.payments.files.types import DuplicateFile, InvalidFile, RailFile, StuckLine
from billfold.payments.wires.iso20022.types import FedwireMistake
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import claimed
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.ids import command_id, derive
from billfold.reconciliation import store
from billfold.reconciliation.commands import ReconcileDay
from billfold.reconciliation.compare import compare, preview
from billfold.reconciliation.readers import read_statements
from billfold.reconciliation.types import CLAIM, Cause, NewBreak, Source, Statement, day_id

log = structlog.get_logger(__name__)

STATEMENT = "STATEMENT"
MORNING = 7
"""The hour in Eastern time by which the statements of the last business day are there."""
BREAKS_MAX = 1_000
_LOOKBACK, _ONE_DAY = timedelta(days=31), timedelta(days=1)
_OPENED_AT = "SELECT opened_at FROM customer WHERE customer_id = $1"
_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"


class DayNotClosed(Exception):
    """The bank has not closed the day of a statement: the file waits."""


class StatementFiles(InboundFiles):
    """Files of statements, from the folder or from an operator."""

    rail = STATEMENT
    whole_file = FedwireMistake(0, "file", "")

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return derive(bank.seed, command_id(f"statement-file:{name}", digest), attempt)

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> Mapping[str, Any]:
        statements = await asyncio.to_thread(read_statements, content, bank.calendars)
        for each in statements:
            _require_own(bank, each)
        async with claimed(bank.pool, CLAIM, wait=WAIT):
            statements = await _only_new(bank, statements, file.file_id)
            items, stuck = [], []
            for each in statements:
                try:
                    items.append(await _reconcile_statement(bank, each, file.file_id))
                except InvalidFile as wrong:  # the other days of the file stand
                    stuck.append(StuckLine(0, f"{each.account} {each.day}", "; ".join(map(str, wrong.mistakes))))
                    if len(stuck) == len(statements):
                        raise
        return {"items": items, "stuck": stuck}

    async def import_file(self, bank: Bank, name: str, content: bytes, *, by: Operator) -> RailFile:
        """Store a file of an operator and reconcile it. Raises Refused `forbidden`, and InvalidInput at `file`."""
        by.require(Power.RECONCILE)
        async with recorded_action(bank, by, "statement.imported", ("rail_file", None), file=name):
            try:
                file = await self.store_content(bank, name, content)
            except DuplicateFile as duplicate:
                raise InvalidInput.at("file", msg=str(duplicate)) from None
            await self.process(bank, file, wait=WAIT)
            return await find_file(bank.pool, file.file_id)


def _require_own(bank: Bank, statement: Statement) -> None:
    """Refuse the statement of another account."""
    settings = bank.settings
    known = {
        Source.RESERVE: (settings.reserve_account,),
        Source.CUSTODIAN: (settings.custodian_account,),
        Source.DEALER: settings.dealers,
    }[statement.source]
    if statement.account not in known:
        name = {Source.DEALER: "dealer"}.get(statement.source, "account")
        raise _refused(f"is of the {name} {statement.account[:35]!r}, which is not the bank's")


async def _only_new(bank: Bank, statements: Sequence[Statement], file_id: UUID) -> list[Statement]:
    """Return the statements; trades of a day that has its recap, reported late, are in the newest recap of the file.

    Refuses another statement that came in another file.
    """
    new, late = list[Statement](), list[Statement]()
    for each in statements:
        key = day_id(each.source, each.account, each.day)
        before = await store.find_day(bank.pool, bank.own_id, key)
        is_second = each.is_final and before is not None and before.file_id not in {None, file_id}
        (late if is_second else new).append(each)
    for each in late:
        same = [nth for nth, other in enumerate(new) if (other.source, other.account) == (Source.DEALER, each.account)]
        if not same:
            raise _refused(f"is a second statement of {each.account} for {each.day}")
        into = new[newest := max(same, key=lambda nth: new[nth].day)]
        new[newest] = msgspec.structs.replace(into, trades=into.trades + each.trades, odd=into.odd + each.odd)
    return new


def _refused(reason: str) -> InvalidFile:
    return InvalidFile([FedwireMistake(0, "file", reason)])


async def _reconcile_statement(bank: Bank, statement: Statement, file_id: UUID) -> dict[str, Any]:
    bank_id = bank.own_id
    told = {"source": statement.source, "account": statement.account, "day": str(statement.day)}
    async with bank.one_snapshot() as conn:
        if not statement.is_final:
            matched, others = await preview(conn, bank, statement)
            lines = [{"line": each.line_no, "amount": each.stated, "reference": each.reference} for each in others]
            return told | {"lines": statement.length, "matched": matched, "unknown": lines}
        if statement.day >= await conn.fetchval(_OPEN_DAY, bank_id):
            raise DayNotClosed(f"The bank has not closed {statement.day}.")
        before = await store.find_day(conn, bank_id, day_id(statement.source, statement.account, statement.day))
        if before is not None and before.file_id == file_id:
            return told | {"lines": before.lines, "matched": before.matched}
        found = await compare(conn, bank, statement)
    if len(found.opened) > BREAKS_MAX:
        raise _refused(f"differs in {len(found.opened)} lines: is it of this bank and of {statement.day}?")
    command = ReconcileDay(
        **_named(bank, statement.source, statement.account, statement.day, file_id),
        references=(
            day_id(statement.source, statement.account, statement.day),
            *found.closed,
            *(each for each, _, _ in found.changed),
        ),
        opening=statement.opening,
        closing=statement.closing,
        lines=statement.length,
        matched=found.matched,
        opened=tuple(found.opened),
        closed=tuple(found.closed),
        changed=tuple(found.changed),
    )
    await bank.engine.submit(command)
    log.info("statement_reconciled", **told, lines=statement.length, matched=found.matched, breaks=len(found.opened))
    return told | {"lines": statement.length, "matched": found.matched, "breaks": len(found.opened)}


def _named(bank: Bank, source: Source, account: str, day: date, file_id: UUID | None) -> dict[str, Any]:
    return {
        "caller": "reconciliation",
        "key": command_id(f"reconcile:{source}:{account}", f"{day}:{file_id}"),
        "customers": (bank.own_id,),
        "origin": Origin.system(),
        "source": source,
        "account": account,
        "day": day,
        "file_id": file_id,
    }


async def reconcile(bank: Bank) -> int:
    """Reconcile the files that have arrived or wait for a close, and open a break for every day without a statement.

    Returns how many days were reconciled or are found missing.
    """
    missing = await _list_missing(bank)  # first: a statement of it may arrive in the meantime, one of a later day too
    files = StatementFiles()
    for each in await retries.list_failing(bank.pool):
        if each.rail == STATEMENT:
            await retries.retry_now(bank.pool, each, wall_now())
    done = await files.process_all(bank)
    for file in await retries.list_due(bank.pool, STATEMENT, wall_now()):  # another process reconciles it right now
        await files.process(bank, file, wait=WAIT)
    async with claimed(bank.pool, CLAIM, wait=WAIT):
        for source, account, day in missing:
            new = NewBreak(cause=Cause.NO_STATEMENT, subject=f"statement of {day}")
            named = _named(bank, source, account, day, None)
            command = ReconcileDay(**named, references=(day_id(source, account, day),), opened=(new,))
            try:
                await bank.engine.submit(command)
                done += 1
            except Refused as refusal:  # it has come in the meantime
                log.info("statement_not_missing", account=account, reason=refusal.detail)
    return done


async def _list_missing(bank: Bank) -> list[tuple[Source, str, date]]:
    """Return the accounts and closed days of the last month that lack a statement; the first one begins the series."""
    bank_id, settings, calendars, conn = bank.own_id, bank.settings, bank.calendars, bank.pool
    last = calendars.settlement_on_or_before(await conn.fetchval(_OPEN_DAY, bank_id) - _ONE_DAY)
    if await bank.now() < et_instant(calendars.next_settlement_day(last), MORNING):
        last = calendars.settlement_on_or_before(last - _ONE_DAY)
    since = last - _LOOKBACK
    opened_on = et_date(await conn.fetchval(_OPENED_AT, bank_id))
    there = {(each.source, each.account, each.day) for each in await store.list_days(conn, bank_id, since)}
    wanted = []
    for source, account in ((Source.RESERVE, settings.reserve_account), (Source.CUSTODIAN, settings.custodian_account)):
        if account is None:
            continue
        first = await store.find_first_day(conn, bank_id, source, account) or max(last, opened_on)
        days = (since + timedelta(days=nth) for nth in range(_LOOKBACK.days + 1))
        wanted += [(source, account, day) for day in days if day >= first and calendars.is_settlement_day(day)]
    if settings.dealer_recaps:
        for dealer, day in await store.list_dealer_days(conn, bank_id, since):
            if dealer in settings.dealer_recaps and day <= last:
                wanted.append((Source.DEALER, dealer, day))
    return sorted((each for each in wanted if each not in there), key=lambda each: (each[2], each[0]))


class Mornings:
    """A task of the worker: looks for missing statements once per business day, from the morning on."""

    def __init__(self) -> None:
        self._done_for: object = None

    async def run(self, bank: Bank) -> int:
        """Reconcile after each close, and in the morning; return how many days."""
        settings, now = bank.settings, await bank.now()
        if not (settings.reserve_account or settings.custodian_account or settings.dealer_recaps):
            return 0
        open_day = await bank.pool.fetchval(_OPEN_DAY, bank.own_id)
        stage = open_day, now >= et_instant(et_date(now), MORNING)
        if stage == self._done_for:
            return 0
        done = await reconcile(bank)
        self._done_for = stage
        return done
