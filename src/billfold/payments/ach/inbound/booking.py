"""The entries of a file, once it has been found right: each is booked where it belongs.

Three kinds: entries for our portals, entries of ours that come back, and changes to be noted. What
reaches nobody is held in suspense. Names are looked up for many entries at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.ledger.engine.bulk import AT_ONCE, submit_many
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.due_work import house_id
from billfold.ledger.jobs.types import Appointment
from billfold.ledger.types import Direction
from billfold.payments.ach import types as ach_types
from billfold.payments.ach.commands import NoteAchChange, ReceiveAch, ReturnAch
from billfold.payments.ach.inbound.counterparties import correct, fail_verification
from billfold.payments.ach.inbound.validation import DISHONOURED, incoming_of
from billfold.payments.ach.ports import AchFile, Line, Return
from billfold.payments.ach.rules import notifications_of_change, windows
from billfold.payments.ach.rules.originate import WINDOW, window_at
from billfold.payments.ach.rules.receive import NO_ACCOUNT
from billfold.payments.ach.rules.returns import NOT_OURS
from billfold.payments.ach.store import entries as ach_entries
from billfold.payments.ach.store import files
from billfold.payments.ach.types import AchEntry, AchWay, Answered, Incoming
from billfold.payments.files.exceptions import Stuck
from billfold.payments.files.retries import AWAY, said
from billfold.payments.suspense import store as suspense_store
from billfold.payments.suspense.types import STAYS
from billfold.payments.suspense.worker import OUR_CUSTOMERS, OUR_RETURN, Unclaimed, hold_unclaimed
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command
    from billfold.ledger.engine.pending_command import Answer
    from billfold.payments.files.store import RailFile

SUSPENSE_RETURN = "ach.suspense_return"
"""The kind of appointment at which an answer is made for what has left suspense."""
SHOWN = 1_000
"""Entries of one file that its report names: those that did not simply go well."""
STUCK_MAX = 100
"""Lines of one file that may be stuck: when more are, it is not for what they say."""

_PORTALS = """
SELECT d.value, d.customer_id, p.portal_id, p.pocket_id
  FROM directory d JOIN portal p ON p.customer_id = d.customer_id AND p.portal_id = d.object_id
 WHERE d.kind = 'account' AND d.value = ANY($1::text[])
"""


class Told(msgspec.Struct):
    """What became of a file, as its report says. Amounts are cents."""

    entries: int = 0
    credits: int = 0
    debits: int = 0
    taken: int = 0
    sent_back: int = 0
    held: int = 0
    returns: int = 0
    changes: int = 0
    lines: list[dict[str, Any]] = []
    stuck: list[Stuck] = []

    def name(self, line: Line, outcome: str, code: str | None = None) -> None:
        """Name an entry with what became of it."""
        if len(self.lines) < SHOWN:
            self.lines.append(
                {"line": line.number, "trace": line.entry.trace, "outcome": outcome, "code": code}
            )


class _Declined(Refused):
    """The command of a line, and no other that follows from it, was refused: nothing is booked."""


class Booking:
    """Books one file, or those of its lines that could not be booked before."""

    def __init__(self, bank: Bank, file: RailFile, head: AchFile) -> None:
        self._bank = bank
        self._file_id = file.file_id
        self._arrived_at = file.created_at
        self._made_on = head.created_at.date()
        self._held: list[Unclaimed] = []
        self._answers: list[tuple[UUID, Answered]] = []
        self.told = msgspec.json.decode(file.report or "{}", type=Told)
        self._refused = {each.line: each.refused for each in self.told.stuck}

    async def book(self, lines: Iterator[Line]) -> Told:
        """Book what a file says, lot by lot. What has been booked before stays as it is.

        Lines that cannot be booked are told as stuck; more than a hundred fail the file.
        """
        left = {each.line for each in self.told.stuck}
        self.told.stuck = []
        if left:
            lines = (each for each in lines if each.number in left)
        while lot := await asyncio.to_thread(_next_lot, lines):
            await self._book(lot)
        self.told.lines.sort(key=itemgetter("line"))
        return self.told

    async def _book(self, lot: Sequence[Line]) -> None:
        """Book a lot, or find out which of its lines cannot be booked."""
        before = msgspec.structs.replace(self.told, lines=[*self.told.lines])
        try:
            await self._book_all(lot)
        except AWAY:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one line must not hold up others
            self.told, self._held, self._answers = before, [], []
            if len(lot) == 1:
                self._stick(lot[0], error)
                return
            half = len(lot) // 2
            await self._book(lot[:half])
            await self._book(lot[half:])

    def _stick(self, line: Line, error: Exception) -> None:
        """Leave a line for later. Raises the error when there are so many that it is not theirs."""
        if len(self.told.stuck) == STUCK_MAX:
            raise error
        refused = self._refused.get(line.number, 0) + isinstance(error, _Declined)
        stuck = Stuck(line.number, line.entry.trace, said(error), refused)
        self.told.stuck = [*self.told.stuck, stuck]

    async def _book_all(self, lot: Sequence[Line]) -> None:
        self._count(lot)
        await self._receive([each for each in lot if each.entry.code[1] not in "16"])
        await self._take_back([each for each in lot if each.returned is not None])
        await self._note([each for each in lot if each.changed is not None])
        await self._end_lot()

    async def _end_lot(self) -> None:
        held, self._held = self._held, []
        answers, self._answers = self._answers, []
        await hold_unclaimed(self._bank, held)
        await answer_soon(self._bank, answers)

    def _count(self, lot: Sequence[Line]) -> None:
        self.told.entries += len(lot)
        for each in lot:
            if each.entry.is_debit:
                self.told.debits += each.entry.amount
            else:
                self.told.credits += each.entry.amount

    # -- for our portals ---------------------------------------------------------------

    async def _receive(self, lot: Sequence[Line]) -> None:
        accounts = [f"{each.entry.routing_number}:{each.entry.account_number}" for each in lot]
        rows = await self._bank.pool.fetch(_PORTALS, list(set(accounts))) if lot else []
        portals = {row["value"]: row for row in rows}
        known, commands = [], list[ReceiveAch]()
        for line, account in zip(lot, accounts, strict=True):
            portal = portals.get(account)
            if portal is None:
                self._nobody(line)
                continue
            incoming = incoming_of(line)
            ach_id = self._entry_id(incoming)
            known.append(line)
            commands.append(
                ReceiveAch(
                    caller="ach-file", key=self._key(line), customers=(portal["customer_id"],),
                    ach_id=ach_id, file_id=self._file_id, portal_id=portal["portal_id"],
                    pocket_id=portal["pocket_id"], entry=incoming, references=(ach_id,),
                )
            )  # fmt: skip
        async for line, answer in self._submit(known, commands):
            if answer.outcome["status"] == "COMPLETED":
                self.told.taken += 1
            else:
                self.told.sent_back += 1
                self.told.name(line, "SENT_BACK", answer.outcome["code"])

    def _nobody(self, line: Line) -> None:
        """Hold what reaches no portal; a prenote moves nothing and is answered at once."""
        incoming = incoming_of(line)
        told = ach_types.answered(incoming, NO_ACCOUNT, bank=self._ours)
        if incoming.is_prenote:
            self._answers.append((self._key(line), told))
            self.told.sent_back += 1
            self.told.name(line, "SENT_BACK", NO_ACCOUNT)
            return
        self._hold(line, "There is no account of this number.", told, NO_ACCOUNT)

    # -- of ours, coming back ------------------------------------------------------------

    async def _take_back(self, lot: Sequence[Line]) -> None:
        if not lot:
            return
        ours = await self._originals(lot)
        known, commands = [], list[ReturnAch]()
        for line in lot:
            returned = line.returned
            assert returned is not None
            entry = ours.get(returned.original_trace)
            if entry is None or returned.reason in DISHONOURED:
                self._object(line, returned, NOT_OURS)
                continue
            known.append(line)
            commands.append(
                ReturnAch(
                    caller="ach-file", key=self._key(line), customers=(entry.customer_id,),
                    ach_id=entry.ach_id, code=returned.reason,
                    direction=_direction(line), amount=line.entry.amount, trace=line.entry.trace,
                    arrived_at=self._arrived_at,
                    references=(entry.ach_id,),
                )
            )  # fmt: skip
        async for line, answer in self._submit(known, commands):
            await self._came_back(line, answer.outcome, ours)

    async def _came_back(
        self, line: Line, outcome: dict[str, Any], ours: dict[str, AchEntry]
    ) -> None:
        returned = line.returned
        assert returned is not None
        if outcome["status"] == "NOT_ACCEPTED":
            self._object(line, returned, outcome["code"])
            return
        self.told.returns += 1
        self.told.name(line, "RETURNED", returned.reason)
        entry = ours[returned.original_trace]
        if outcome["status"] == "NO_POCKET":
            why = "The pocket it was paid from is closed."
            self._hold(line, why, OUR_CUSTOMERS)
        if entry.pocket_id is None:
            await fail_verification(self._bank, entry, returned.reason)

    def _object(self, line: Line, returned: Return, code: str) -> None:
        """Hold the money of a return that does not hold, and send it back with a reason."""
        why = f"A return under {returned.reason} that fits no payment ({code})."
        if returned.reason in DISHONOURED:
            why = f"Our return was refused under {returned.reason}."
            self._hold(line, why, OUR_RETURN, returned.reason)
        else:
            self._hold(line, why, _dishonoured(line, returned, code), code)

    # -- changes -------------------------------------------------------------------------

    async def _note(self, lot: Sequence[Line]) -> None:
        if not lot:
            return
        ours = await self._originals(lot)
        known, commands = [], list[NoteAchChange]()
        corrected = []
        for line in lot:
            changed = line.changed
            assert changed is not None
            entry = ours.get(changed.original_trace)
            if entry is None:
                self.told.name(line, "FITS_NO_ENTRY", changed.code)
                continue
            known.append(line)
            correction = notifications_of_change.correction_of(changed.code, changed.corrected)
            corrected.append((self._key(line), entry, correction))
            commands.append(
                NoteAchChange(
                    caller="ach-file", key=self._key(line), customers=(entry.customer_id,),
                    ach_id=entry.ach_id, code=changed.code, corrected=changed.corrected,
                    references=(entry.ach_id,),
                )
            )  # fmt: skip
        async for line, _ in self._submit(known, commands):
            changed = line.changed
            assert changed is not None
            self.told.changes += 1
            self.told.name(line, "NOTED", changed.code)
        await correct(self._bank, corrected)

    # -- alike ---------------------------------------------------------------------------

    @property
    def _ours(self) -> str:
        return self._bank.settings.bank_routing_number[:8]

    def _entry_id(self, entry: Incoming) -> UUID:
        """Return the id of an entry: the same when another file brings it again on its day."""
        return command_id("ach-entry", f"{entry.trace}:{self._made_on:%Y%m%d}")

    def _key(self, line: Line) -> UUID:
        """Return the key of a line's command; what was refused is asked for under another."""
        refused = self._refused.get(line.number, 0)
        named = f"ach-line:{line.number}:{refused}" if refused else f"ach-line:{line.number}"
        return command_id(named, self._file_id)

    async def _originals(self, lot: Sequence[Line]) -> dict[str, AchEntry]:
        traces = [
            told.original_trace
            for each in lot
            if (told := each.returned or each.changed) is not None
        ]
        return await ach_entries.find_by_traces(self._bank.pool, traces)

    async def _submit(
        self, lines: Sequence[Line], commands: Sequence[Command]
    ) -> AsyncIterator[tuple[Line, Answer]]:
        at = iter(lines)
        try:
            async for _, answer in submit_many(self._bank, commands):
                yield next(at), answer
        except (Refused, NotFound) as refused:
            raise _Declined(refused.code, refused.detail) from None

    def _hold(self, line: Line, why: str, how: Answered | str, code: str | None = None) -> None:
        """Let the house hold it: it goes back by this answer, or stays for this reason."""
        incoming = incoming_of(line)
        details = {
            "company_name": incoming.company,
            "company_entry_description": incoming.purpose,
            "individual_identification_number": incoming.identification or None,
            "trace_number": incoming.trace,
            "ach_direction": AchWay.RECEIVING,
            "account_number": incoming.account_number,
            "description": incoming.purpose,
            **({STAYS: how} if isinstance(how, str) else {"answer": msgspec.to_builtins(how)}),
        }
        item_id = command_id("ach-unclaimed", self._key(line))
        self._held.append(Unclaimed(item_id, _direction(line), line.entry.amount, why, details))
        self.told.held += 1
        self.told.name(line, "HELD", code)


def _direction(line: Line) -> Direction:
    return Direction.DEBIT if line.entry.is_debit else Direction.CREDIT


def _next_lot(lines: Iterator[Line]) -> list[Line]:
    return list(islice(lines, AT_ONCE))


async def answer_soon(bank: Bank, answers: Sequence[tuple[UUID, Answered]]) -> None:
    """Let answers, each with its id, wait for the next window."""
    if not answers:
        return
    now, house = await bank.now(), house_id(bank.seed)
    due_at = windows.next_deadline(now, bank.calendars)
    await files.put_answers(bank.pool, answers, house, due_at=due_at, now=now)
    await jobs_store.make(bank.pool, [Appointment(WINDOW, window_at(due_at), None, due_at)])


async def answer_from_suspense(bank: Bank, at: Appointment) -> None:
    """Send back what the house held: the money has left suspense."""
    item = await suspense_store.get_item(bank.pool, at.object_id)
    told = msgspec.json.decode(item.details).get("answer")
    if told is not None:
        await answer_soon(bank, [(item.item_id, msgspec.convert(told, Answered))])


def _dishonoured(line: Line, returned: Return, code: str) -> Answered:
    """Return the entry that refuses a return: it repeats the return's number, date and reason."""
    entry, day = line.entry, line.batch.settlement_day or 0
    return Answered(
        reason=code,
        code=entry.code,
        routing_number=line.batch.bank + ach_types.check_digit(line.batch.bank),
        account_number=entry.account_number,
        amount=entry.amount,
        name=entry.name,
        identification=entry.identification,
        original_trace=returned.original_trace,
        original_bank=returned.original_bank,
        entry_class=line.batch.entry_class,
        company=line.batch.company,
        company_id=line.batch.company_id,
        purpose=line.batch.purpose,
        information=f"{entry.trace}{day:03}{returned.reason[1:]}",
    )
