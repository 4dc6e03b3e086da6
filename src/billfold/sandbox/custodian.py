"""The simulated custodian of a sandbox: answers instructions from its own books, which it keeps in a file.

`custodian.sqlite` has `holding` (cusip, units), `cash` (what it received for the bank and paid), `instruction` (what it
was told and what it did) and `plan` (how it treats the next instructions). It never looks into the bank's ledger.
"""

import sqlite3
from datetime import date, datetime, time, timedelta
from hashlib import blake2b
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

CUSTODIAN_DAY: Final = "sandbox.custodian"
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

    def _open(self) -> sqlite3.Connection:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self._folder / "custodian.sqlite", timeout=10)
        database.executescript(_TABLES)
        return database

    def plan(self, plan: Plan) -> None:
        """Treat the next instruction like this, after those planned before."""
        with self._open() as database:
            database.execute("INSERT INTO plan (plan) VALUES (?)", [msgspec.json.encode(plan).decode()])

    def holdings(self) -> dict[str, int]:
        """Return the units that the custodian holds for the bank, by CUSIP."""
        with self._open() as database:
            return dict(database.execute("SELECT cusip, units FROM holding WHERE units <> 0 ORDER BY cusip"))

    def cash(self, *, after: int, until: date) -> list[tuple[int, str, int]]:
        """Return what it received for the bank and paid after a number: the numbers, references and cents."""
        found = "SELECT rowid, reference, cents FROM cash WHERE rowid > ? AND day <= ? AND cents <> 0 ORDER BY rowid"
        with self._open() as database:
            return database.execute(found, [after, until.isoformat()]).fetchall()

    async def receive(self, bank: Bank, transfer_id: UUID, cusip: str, units: int) -> None:
        """Receive bills from another custodian, free of payment, once."""
        with self._open() as database:
            receipt = [transfer_id.hex, "{}", "", "SETTLED", "{}"]
            if database.execute(f"{_NEW_INSTRUCTION} ON CONFLICT DO NOTHING", receipt).rowcount:
                self._hold(database, bank, cusip, units)
        await self._wake(bank, bank.market.bill(cusip).maturity)

    async def receive_file(self, bank: Bank, file_id: UUID) -> None:
        """Read a file of the bank: answer what is free of payment or cancelled at once, the rest on its day."""
        if bank.settings.custodian is not None:  # somebody else answers
            return
        answers: list[messages.Message] = []
        now = await bank.now()
        for read in messages.read_messages(await read_content(bank, file_id)):
            message = read.message
            with self._open() as database:
                if isinstance(message, messages.Instruction):
                    answers += self._accept(database, bank, message, now)
                elif isinstance(message, messages.CancellationRequest):
                    answers.append(self._cancel(database, message))
            if isinstance(message, messages.Instruction):
                await self._wake(bank, message.settles_on)
        await self._send(bank, answers, now)

    async def run_day(self, bank: Bank, job: ScheduledJob) -> None:
        """Settle what is due, and redeem what has matured: a scheduled job."""
        today = et_date(job.at)
        with self._open() as database:
            rows = database.execute(
                "SELECT message, plan FROM instruction WHERE status = 'MATCHED' AND settles_on <= ? ORDER BY tx_id",
                [today.isoformat()],
            ).fetchall()
            answers = [each for told, plan in rows for each in self._settle(database, bank, told, plan, today)]
            is_open = database.execute("SELECT count(*) FROM instruction WHERE status = 'MATCHED'").fetchone()[0]
            answers += self._redeem(database, bank, today)
        for cusip in self.holdings():
            await self._wake(
                bank, bank.calendars.settlement_on_or_after(bank.market.bill(cusip).maturity), after=job.at
            )
        await self._send(bank, answers, job.at)
        if is_open:
            await self._wake(bank, bank.calendars.next_settlement_day(today), after=job.at)

    def _accept(
        self, database: sqlite3.Connection, bank: Bank, message: messages.Instruction, now: datetime
    ) -> list[messages.Message]:
        if database.execute("SELECT 1 FROM instruction WHERE tx_id = ?", [message.tx_id]).fetchone():
            return []
        is_free = message.payment == "FREE"
        plan = Plan(rejects=is_free and _REFUSE_MARK in (message.receiving or _NOBODY).name.upper())
        if not is_free and (next_plan := self._next_plan(database, misses_maturity=False)):
            plan = next_plan
        text, plan_text = msgspec.json.encode(message).decode(), msgspec.json.encode(plan).decode()
        status = "REJECTED" if plan.rejects else "MATCHED"
        database.execute(
            _NEW_INSTRUCTION,
            [message.tx_id, text, message.settles_on.isoformat(), status, plan_text],
        )
        if plan.rejects:
            reason = "SAFE Unknown account" if is_free else "DMON Another amount"
            return [_status(message, rejected=reason)]
        if is_free:
            return self._settle(database, bank, text, plan_text, et_date(now))
        return [_status(message, matched="")]

    def _settle(
        self, database: sqlite3.Connection, bank: Bank, message_text: str, plan_text: str, today: date
    ) -> list[messages.Message]:
        message = msgspec.json.decode(message_text, type=messages.Instruction)
        plan = msgspec.json.decode(plan_text, type=Plan)
        if today < message.settles_on + timedelta(days=plan.fails_days):
            return [_status(message, failing="LACK")]
        done, paid = database.execute(
            "SELECT settled_units, settled_cents FROM instruction WHERE tx_id = ?", [message.tx_id]
        ).fetchone()
        units, cents = message.units - done, (message.money or 0) - paid
        if not done and 0 < plan.settles_units_first < units:
            units = plan.settles_units_first
            cents = (2 * (message.money or 0) * units + message.units) // (2 * message.units)
        is_over = done + units == message.units
        database.execute(
            "UPDATE instruction SET settled_units = settled_units + ?, settled_cents = settled_cents + ?, status = ?"
            " WHERE tx_id = ?",
            [units, cents, "SETTLED" if is_over else "MATCHED", message.tx_id],
        )
        said = None if message.money is None else cents + plan.money_off_cents
        sign = 1 if message.movement == "RECE" else -1
        self._hold(database, bank, message.cusip, sign * units)
        database.execute(_PAID, [today.isoformat(), message.tx_id, -sign * (said or 0)])
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

    def _redeem(self, database: sqlite3.Connection, bank: Bank, today: date) -> list[messages.Message]:
        rows = database.execute(
            "SELECT cusip, units FROM holding WHERE units > 0 AND matures_on <= ? ORDER BY cusip", [today.isoformat()]
        ).fetchall()
        answers: list[messages.Message] = []
        for cusip, units in rows:
            if self._next_plan(database, misses_maturity=True):
                continue
            self._hold(database, bank, cusip, -units)
            database.execute(_PAID, [today.isoformat(), cusip, units * _PAR_CENTS])
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

    def _cancel(self, database: sqlite3.Connection, message: messages.CancellationRequest) -> messages.Message:
        status, plan = database.execute(
            "SELECT status, plan FROM instruction WHERE tx_id = ?", [message.tx_id]
        ).fetchone() or ("UNKNOWN", "{}")
        denied = status != "MATCHED" or msgspec.json.decode(plan, type=Plan).denies_cancellation
        if not denied:
            database.execute("UPDATE instruction SET status = 'CANCELLED' WHERE tx_id = ?", [message.tx_id])
        return messages.CancellationStatus(
            tx_id=message.tx_id,
            movement=message.movement,
            payment=message.payment,
            denied="DSET" if denied else None,
            cancelled=None if denied else "CANI",
            account=message.account,
        )

    def _hold(self, database: sqlite3.Connection, bank: Bank, cusip: str, units: int) -> None:
        matures_on = bank.calendars.settlement_on_or_after(bank.market.bill(cusip).maturity).isoformat()
        database.execute(
            "INSERT INTO holding VALUES (?, ?, ?) ON CONFLICT (cusip) DO UPDATE SET units = units + excluded.units",
            [cusip, matures_on, units],
        )

    def _next_plan(self, database: sqlite3.Connection, *, misses_maturity: bool) -> Plan | None:
        """Return the next plan of instructions, or of maturities, and forget it."""
        for plan_id, text in database.execute("SELECT plan_id, plan FROM plan ORDER BY plan_id").fetchall():
            plan = msgspec.json.decode(text, type=Plan)
            if plan.misses_maturity == misses_maturity:
                database.execute("DELETE FROM plan WHERE plan_id = ?", [plan_id])
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

    async def _send(self, bank: Bank, answers: list[messages.Message], now: datetime) -> None:
        """Put a file into the inbox and process it at once."""
        if not answers:
            return
        ends = messages.MessageEnds(bank.settings.custodian_bic, bank.settings.bank_bic, now)
        content = messages.write_messages(answers, ends)
        exchange = bank.ports[RailExchanges].custody
        assert isinstance(exchange, ExchangeFolders)
        await exchange.network_side().transmit(f"custodian-{blake2b(content, digest_size=16).hexdigest()}.xml", content)
        await CustodianFiles().process_all(bank)


def _status(message: messages.Instruction, **status: str) -> messages.Message:
    return messages.StatusAdvice(tx_id=message.tx_id, account=message.account, **status)


_NOBODY = messages.Party(name="")
