"""The simulated custodian of a sandbox: answers instructions from its own books, which it keeps in a file.

`custodian.sqlite` has `holding` (cusip, units), `cash` (what it received for the bank and paid), `instruction` (what it
was told and what it did), `outbox` (its messages that are in no file yet) and `plan` (how it treats the next
instructions). It never looks into the bank's ledger.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.custody import messages
from billfold.payments.custody.inbound import CustodianFiles
from billfold.payments.files.exchange import ExchangeFolders, RailExchanges
from billfold.payments.files.store import read_content
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id

CUSTODIAN_DAY: Final = "sandbox-custodian"
"""The scheduled job in which the custodian settles what is due, and redeems what has matured."""
FOLDER: Final = "custodian"
_OPENS = time(10)
_REFUSE_MARK = "REFUSE"
"""A counterparty with this word in its name refuses bills."""
_PAR_CENTS = 100_00
_TABLES = """
CREATE TABLE IF NOT EXISTS holding (cusip TEXT PRIMARY KEY, matures_on TEXT NOT NULL, units INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS cash (day TEXT NOT NULL, reference TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS instruction (
  tx_id TEXT PRIMARY KEY, message TEXT NOT NULL, settles_on TEXT NOT NULL, status TEXT NOT NULL, plan TEXT NOT NULL,
  settled_units INTEGER NOT NULL DEFAULT 0, settled_cents INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS plan (plan_id INTEGER PRIMARY KEY, plan TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (answer_id INTEGER PRIMARY KEY AUTOINCREMENT, answer TEXT NOT NULL);
"""
_PAID = "INSERT INTO cash VALUES (?, ?, ?)"
_NEW_INSTRUCTION = "INSERT INTO instruction (tx_id, message, settles_on, status, plan) VALUES (?, ?, ?, ?, ?)"


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The treatment of an instruction: rejected, failing for days, a part of it first, or wrong money.

    With `misses_maturity` it says nothing of the next bill that matures.
    """

    rejects: bool = False
    fails_days: int = 0
    settles_units_first: int = 0
    money_off_cents: int = 0
    denies_cancellation: bool = False
    misses_maturity: bool = False


class SimulatedCustodian:
    """The custodian of one process. Processes share its file, and take turns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def _books(self) -> Iterator[sqlite3.Connection]:
        """Open the books for one transaction."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / "custodian.sqlite"
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as books:
            books.executescript(_TABLES)
            with books:
                books.execute("BEGIN IMMEDIATE")
                yield books

    def plan(self, plan: Plan) -> None:
        """Treat the next instruction like this, after those planned before."""
        with self._books() as books:
            books.execute("INSERT INTO plan (plan) VALUES (?)", [msgspec.json.encode(plan).decode()])

    def holdings(self) -> dict[str, int]:
        """Return the units that the custodian holds for the bank, by CUSIP."""
        with self._books() as books:
            return dict(books.execute("SELECT cusip, units FROM holding WHERE units <> 0 ORDER BY cusip"))

    def cash(self, *, after: int, until: date) -> list[tuple[int, str, int]]:
        """Return what it received for the bank and paid after a number: the numbers, references and cents."""
        found = "SELECT rowid, reference, cents FROM cash WHERE rowid > ? AND day <= ? AND cents <> 0 ORDER BY rowid"
        with self._books() as books:
            return books.execute(found, [after, until.isoformat()]).fetchall()

    async def receive(self, bank: Bank, transfer_id: UUID, cusip: str, units: int) -> None:
        """Receive bills from another custodian, free of payment, once."""
        with self._books() as books:
            receipt = [transfer_id.hex, "{}", "", "SETTLED", "{}"]
            if books.execute(f"{_NEW_INSTRUCTION} ON CONFLICT DO NOTHING", receipt).rowcount:
                self._hold(books, bank, cusip, units)
        await self._wake(bank, bank.market.bill(cusip).maturity)

    async def receive_file(self, bank: Bank, file_id: UUID) -> None:
        """Read a file of the bank: answer what is free of payment or cancelled at once, the rest on its day."""
        if bank.settings.custodian is not None:  # somebody else answers
            return
        now = await bank.now()
        for read in messages.read_messages(await read_content(bank, file_id)):
            message = read.message
            with self._books() as books:
                if isinstance(message, messages.Instruction):
                    _answer(books, self._accept(books, bank, message, now))
                elif isinstance(message, messages.CancellationRequest):
                    _answer(books, [self._cancel(books, message)])
            if isinstance(message, messages.Instruction):
                await self._wake(bank, message.settles_on)
        await self._send(bank)

    async def run_day(self, bank: Bank, job: ScheduledJob) -> None:
        """Settle what is due, and redeem what has matured: a scheduled job."""
        today = et_date(job.at)
        with self._books() as books:
            rows = books.execute(
                "SELECT message, plan FROM instruction WHERE status = 'MATCHED' AND settles_on <= ? ORDER BY tx_id",
                [today.isoformat()],
            ).fetchall()
            for told, plan in rows:
                _answer(books, self._settle(books, bank, told, plan, today))
            _answer(books, self._redeem(books, bank, today))
            is_open = books.execute("SELECT count(*) FROM instruction WHERE status = 'MATCHED'").fetchone()[0]
        days = [bank.calendars.settlement_on_or_after(bank.market.bill(each).maturity) for each in self.holdings()]
        if is_open:
            days.append(bank.calendars.next_settlement_day(today))
        for day in days:
            await self._wake(bank, day, after=job.at)
        await self._send(bank)

    def _accept(
        self, books: sqlite3.Connection, bank: Bank, message: messages.Instruction, now: datetime
    ) -> list[messages.Message]:
        if books.execute("SELECT 1 FROM instruction WHERE tx_id = ?", [message.tx_id]).fetchone():
            return []
        is_free = message.payment == "FREE"
        plan = Plan(rejects=is_free and _REFUSE_MARK in (message.receiving or _NOBODY).name.upper())
        if not is_free and (next_plan := self._next_plan(books, misses_maturity=False)):
            plan = next_plan
        text, plan_text = msgspec.json.encode(message).decode(), msgspec.json.encode(plan).decode()
        status = "REJECTED" if plan.rejects else "MATCHED"
        books.execute(
            _NEW_INSTRUCTION,
            [message.tx_id, text, message.settles_on.isoformat(), status, plan_text],
        )
        if plan.rejects:
            reason = "SAFE Unknown account" if is_free else "DMON Another amount"
            return [_status(message, rejected=reason)]
        if is_free:
            return self._settle(books, bank, text, plan_text, et_date(now))
        return [_status(message, matched="")]

    def _settle(
        self, books: sqlite3.Connection, bank: Bank, message_text: str, plan_text: str, today: date
    ) -> list[messages.Message]:
        message = msgspec.json.decode(message_text, type=messages.Instruction)
        plan = msgspec.json.decode(plan_text, type=Plan)
        if today < message.settles_on + timedelta(days=plan.fails_days):
            return [_status(message, failing="LACK")]
        done, paid = books.execute(
            "SELECT settled_units, settled_cents FROM instruction WHERE tx_id = ?", [message.tx_id]
        ).fetchone()
        units, cents = message.units - done, (message.money or 0) - paid
        if not done and 0 < plan.settles_units_first < units:
            units = plan.settles_units_first
            cents = (2 * (message.money or 0) * units + message.units) // (2 * message.units)
        is_over = done + units == message.units
        books.execute(
            "UPDATE instruction SET settled_units = settled_units + ?, settled_cents = settled_cents + ?, status = ?"
            " WHERE tx_id = ?",
            [units, cents, "SETTLED" if is_over else "MATCHED", message.tx_id],
        )
        said = None if message.money is None else cents + plan.money_off_cents
        sign = 1 if message.movement == "RECE" else -1
        self._hold(books, bank, message.cusip, sign * units)
        books.execute(_PAID, [today.isoformat(), message.tx_id, -sign * (said or 0)])
        confirmation = messages.Confirmation(
            tx_id=message.tx_id,
            custodian_id=f"{message.tx_id[:30]}-{done}"[:35],
            movement=message.movement,
            payment=message.payment,
            settled_on=today,
            cusip=message.cusip,
            units=units,
            account=message.account,
            kind=message.kind,
            money=said,
            credit_or_debit=message.credit_or_debit,
        )
        return [confirmation]

    def _redeem(self, books: sqlite3.Connection, bank: Bank, today: date) -> list[messages.Message]:
        rows = books.execute(
            "SELECT cusip, units FROM holding WHERE units > 0 AND matures_on <= ? ORDER BY cusip", [today.isoformat()]
        ).fetchall()
        answers: list[messages.Message] = []
        for cusip, units in rows:
            if self._next_plan(books, misses_maturity=True):
                continue
            self._hold(books, bank, cusip, -units)
            books.execute(_PAID, [today.isoformat(), cusip, units * _PAR_CENTS])
            paid = messages.Confirmation(
                custodian_id=f"RED{cusip}{today:%Y%m%d}",
                movement="DELI",
                payment="APMT",
                settled_on=today,
                cusip=cusip,
                units=units,
                account=bank.settings.custody_account,
                kind="CORP",
                money=units * _PAR_CENTS,
                credit_or_debit="CRDT",
            )
            answers.append(paid)
        return answers

    def _cancel(self, books: sqlite3.Connection, message: messages.CancellationRequest) -> messages.Message:
        status, plan = books.execute(
            "SELECT status, plan FROM instruction WHERE tx_id = ?", [message.tx_id]
        ).fetchone() or ("UNKNOWN", "{}")
        denied = status != "MATCHED" or msgspec.json.decode(plan, type=Plan).denies_cancellation
        if not denied:
            books.execute("UPDATE instruction SET status = 'CANCELLED' WHERE tx_id = ?", [message.tx_id])
        return messages.CancellationStatus(
            tx_id=message.tx_id,
            movement=message.movement,
            payment=message.payment,
            denied="DSET" if denied else None,
            cancelled=None if denied else "CANI",
            account=message.account,
        )

    def _hold(self, books: sqlite3.Connection, bank: Bank, cusip: str, units: int) -> None:
        matures_on = bank.calendars.settlement_on_or_after(bank.market.bill(cusip).maturity).isoformat()
        books.execute(
            "INSERT INTO holding VALUES (?, ?, ?) ON CONFLICT (cusip) DO UPDATE SET units = units + excluded.units",
            [cusip, matures_on, units],
        )

    def _next_plan(self, books: sqlite3.Connection, *, misses_maturity: bool) -> Plan | None:
        """Return the next plan of instructions, or of maturities, and forget it."""
        for plan_id, text in books.execute("SELECT plan_id, plan FROM plan ORDER BY plan_id").fetchall():
            plan = msgspec.json.decode(text, type=Plan)
            if plan.misses_maturity == misses_maturity:
                books.execute("DELETE FROM plan WHERE plan_id = ?", [plan_id])
                return plan
        return None

    async def _wake(self, bank: Bank, day: date, after: datetime | None = None) -> None:
        """Have the custodian work on a day, or now if it has begun."""
        at = et_instant(day, _OPENS)
        if after is None:
            at = max(at, await bank.now())
        elif at <= after:
            return
        job = ScheduledJob(CUSTODIAN_DAY, command_id(CUSTODIAN_DAY, et_date(at).isoformat()), None, at=at)
        await scheduler.schedule(bank.pool, [job])

    async def _send(self, bank: Bank) -> None:
        """Put what was not sent yet into a file, and have it processed. Sent twice, the bank books it once."""
        with self._books() as books:
            rows = books.execute("SELECT answer_id, answer FROM outbox ORDER BY answer_id").fetchall()
        if not rows:
            return
        last, name = rows[-1][0], f"custodian-{rows[0][0]}-{rows[-1][0]}.xml"
        ends = messages.MessageEnds(bank.settings.custodian_bic, bank.settings.bank_bic, await bank.now())
        answers = [msgspec.json.decode(answer, type=messages.Message) for _, answer in rows]
        exchange = bank.ports[RailExchanges].custody
        assert isinstance(exchange, ExchangeFolders)
        await exchange.network_side().transmit(name, messages.write_messages(answers, ends))
        with self._books() as books:
            books.execute("DELETE FROM outbox WHERE answer_id <= ?", [last])
        await CustodianFiles().process_file(bank, name)


def _answer(books: sqlite3.Connection, answers: Iterable[messages.Message]) -> None:
    """Keep answers to be sent, in the transaction of what they say."""
    rows = [[msgspec.json.encode(each).decode()] for each in answers]
    books.executemany("INSERT INTO outbox (answer) VALUES (?)", rows)


def _status(message: messages.Instruction, **status: str) -> messages.Message:
    return messages.StatusAdvice(tx_id=message.tx_id, account=message.account, **status)


_NOBODY = messages.Party(name="")
