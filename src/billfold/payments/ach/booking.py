"""Booking of a checked file: received entries, returns and notifications of change (NOC).

Entries that cannot be booked to a customer are held in suspense; entries that move no money are listed in the report.
Accounts and originals are looked up for many entries at once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.counterparties.commands import CorrectAccount, FailVerification
from billfold.accounts.counterparties.rules.notification_of_change import Correction, correction_of
from billfold.accounts.counterparties.store import seal_details
from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.dry_run import COMMANDS_PER_BATCH, submit_in_lots
from billfold.ledger.types import Direction
from billfold.payments.ach import returns, store
from billfold.payments.ach.commands import (
    AchEntry,
    AchWay,
    IncomingEntry,
    ReceiveAch,
    ReceiveAchReturn,
    RecordNoc,
    ReturnEntry,
    return_of,
)
from billfold.payments.ach.nacha.records import ADVICE, DEATH_NOTICE, EntryLine, ReturnAddenda
from billfold.payments.ach.nacha.writer import to_ach_text
from billfold.payments.ach.rules.dishonored_returns import dishonored_return, refusal_of
from billfold.payments.ach.rules.receive import NO_ACCOUNT
from billfold.payments.ach.rules.returns import UNKNOWN_ENTRY
from billfold.payments.ach.validation import AchFileReport, CheckedFile, LineOutcome, incoming_of
from billfold.payments.files.types import RailFile, StuckLine
from billfold.payments.suspense import worker
from billfold.payments.suspense.rules import NOT_RETURNABLE
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id

CALLER = "ach-file"
STUCK_LINES_MAX = 100
"""Maximum stuck lines of a file: if more fail, the cause is not the lines."""

_PORTALS = """
WITH d AS MATERIALIZED (
  SELECT value, customer_id, object_id FROM directory WHERE kind = 'account' AND value = ANY($1::text[]))
SELECT d.value, d.customer_id, p.portal_id, p.pocket_id
  FROM d JOIN portal p ON p.customer_id = d.customer_id AND p.portal_id = d.object_id
"""


class _LineRefused(Refused):
    """A rule refused the command of a line, so nothing was booked."""


class AchFileBooking:
    """Books one file, or the lines of it that could not be booked before."""

    def __init__(self, bank: Bank, file: RailFile, checked: CheckedFile) -> None:
        self._bank = bank
        self._file_id = file.file_id
        self._arrived_at = file.created_at
        self._made_on = checked.head.created_at.date()
        self._batch_mistakes = checked.batch_mistakes
        self._suspense_items: list[worker.UnclaimedPayment] = []
        self._return_entries: list[tuple[UUID, ReturnEntry]] = []
        self.report = msgspec.json.decode(file.report or "{}", type=AchFileReport)
        self._keys: PaymentKeys
        self._refused = {each.line: each.refused for each in self.report.stuck}

    async def book(self, lines: Iterator[EntryLine]) -> AchFileReport:
        """Book the entries of a file in batches. Safe to repeat.

        Lines that cannot be booked are reported as stuck; more than a hundred fail the file.
        """
        remaining = {each.line for each in self.report.stuck}
        self.report.stuck = []
        if remaining:
            lines = (each for each in lines if each.number in remaining)
        while chunk := await asyncio.to_thread(lambda: list(islice(lines, COMMANDS_PER_BATCH))):
            await self._book(chunk)
        self.report.lines.sort(key=itemgetter("line"))
        return self.report

    async def _book(self, chunk: Sequence[EntryLine]) -> None:
        """Book a batch; on an error, bisect it to find the lines that cannot be booked."""
        snapshot = msgspec.structs.replace(self.report, lines=[*self.report.lines])
        try:
            await self._book_all(chunk)
        except Exception as error:  # a bug in one line must not block others
            if is_shortage(error):
                raise
            self.report, self._suspense_items, self._return_entries = snapshot, [], []
            if len(chunk) == 1:
                self._mark_stuck(chunk[0], error)
                return
            half = len(chunk) // 2
            await self._book(chunk[:half])
            await self._book(chunk[half:])

    def _mark_stuck(self, line: EntryLine, error: Exception) -> None:
        """Report a line as stuck. Raises the error if too many lines are stuck."""
        if len(self.report.stuck) >= STUCK_LINES_MAX:
            raise error
        refused = self._refused.get(line.number, 0) + isinstance(error, _LineRefused)
        stuck = StuckLine(line.number, line.entry.trace_number, error_summary(error), refused=refused)
        self.report.stuck = [*self.report.stuck, stuck]

    async def _book_all(self, chunk: Sequence[EntryLine]) -> None:
        self._count(chunk)
        objections = [(each, returns.objection_to(each, self._batch_mistakes.get(each.batch_at))) for each in chunk]
        taken = [each for each, objection in objections if objection is None]
        received = [each for each in taken if each.original_trace is None]
        portals, originals = await self._portals(received), await self._originals(taken)
        owners = {row["customer_id"] for row in portals.values()} | {each.customer_id for each in originals.values()}
        self._keys = await PaymentKeys.prepare(self._bank, owners)
        for line, objection in objections:
            if objection is not None:
                self._object(line, objection)
        async for line, outcome in self._submit((each, self._receipt(each, portals)) for each in received):
            self._after_receipt(line, outcome)
        returned = [each for each in taken if each.returned is not None]
        async for line, outcome in self._submit((each, self._return(each, originals)) for each in returned):
            await self._after_return(line, outcome, originals)
        changed = [each for each in taken if each.changed is not None and each.returned is None]
        async for line, outcome in self._submit((each, self._noc(each, originals)) for each in changed):
            self.report.changes += 1
            self.report.name(line, LineOutcome.NOTED, outcome["code"])
        await self._apply_corrections(changed, originals)
        await self._flush_chunk()

    async def _flush_chunk(self) -> None:
        held, self._suspense_items = self._suspense_items, []
        answers, self._return_entries = self._return_entries, []
        await worker.hold_unclaimed_payments(self._bank, held)
        await returns.schedule_return_entries(self._bank, answers)

    def _count(self, chunk: Sequence[EntryLine]) -> None:
        self.report.entries += len(chunk)
        moving = [each.entry for each in chunk if each.batch.standard_entry_class_code != ADVICE]
        self.report.debits += sum(each.amount for each in moving if each.is_debit)
        self.report.credits += sum(each.amount for each in moving if not each.is_debit)

    def _object(self, line: EntryLine, objection: returns.Objection) -> None:
        """List an entry that is not booked as received; hold it if it moves money."""
        code = line.code or objection.return_code
        if not objection.is_held:
            self.report.name(line, LineOutcome.LISTED, code, objection.reason)
            return
        disposition: ReturnEntry | str = objection.stays
        if objection.return_code is not None:
            disposition = self._return_of(line, objection.return_code, objection.reason)
        self._hold(line, objection.reason, disposition, code=code, is_explained=True)

    def _return_of(self, line: EntryLine, code: str, reason: str) -> ReturnEntry:
        """Return the return of an entry, or the dishonored return of a return."""
        incoming = self._incoming_of(line)
        if line.returned is not None:
            return dishonored_return(line, incoming, line.returned, code=code)
        information = to_ach_text(reason, _INFORMATION_WIDTH)
        return return_of(incoming, code, bank=self._own_routing_prefix, information=information)

    def _after_receipt(self, line: EntryLine, outcome: Outcome) -> None:
        if outcome["status"] != "COMPLETED":
            self.report.sent_back += 1
            self.report.name(line, LineOutcome.SENT_BACK, outcome["code"])
            return
        self.report.taken += 1
        if line.batch.standard_entry_class_code == DEATH_NOTICE:
            self.report.name(line, LineOutcome.LISTED, DEATH_NOTICE, "A federal agency says that somebody has died.")

    def _command_fields(self, line: EntryLine, customer_id: UUID, ach_id: UUID) -> dict[str, Any]:
        return {
            "caller": CALLER,
            "key": self._key(line),
            "customers": (customer_id,),
            "ach_id": ach_id,
            "references": (ach_id,),
        }

    async def _portals(self, lines: Sequence[EntryLine]) -> Mapping[str, Record]:
        rows = await self._bank.pool.fetch(_PORTALS, list({_account(each) for each in lines})) if lines else []
        return {row["value"]: row for row in rows}

    def _receipt(self, line: EntryLine, portals: Mapping[str, Record]) -> ReceiveAch | None:
        portal = portals.get(_account(line))
        if portal is None:
            self._hold_unknown(line)
            return None
        incoming = self._incoming_of(line, portal["customer_id"])
        # The id is the same if another file of the same date repeats the entry. Batches may repeat a trace number.
        content = f"{incoming.code}:{incoming.amount}:{portal['portal_id']}"
        ach_id = command_id("ach-entry", f"{incoming.trace}:{self._made_on:%Y%m%d}:{content}")
        return ReceiveAch(
            **self._command_fields(line, portal["customer_id"], ach_id),
            file_id=self._file_id,
            portal_id=portal["portal_id"],
            pocket_id=portal["pocket_id"],
            entry=incoming,
        )

    def _incoming_of(self, line: EntryLine, customer_id: UUID | None = None) -> IncomingEntry:
        """Return an entry in the form in which it is booked to a customer, or held."""
        return incoming_of(line, self._keys.of(customer_id), self._keys.bank_key)

    def _hold_unknown(self, line: EntryLine) -> None:
        """Hold an entry to an unknown account in suspense; return a prenote at once."""
        incoming = self._incoming_of(line)
        return_entry = return_of(incoming, NO_ACCOUNT, bank=self._own_routing_prefix)
        if incoming.is_prenote:
            self._return_entries.append((self._key(line), return_entry))
            self.report.sent_back += 1
            self.report.name(line, LineOutcome.SENT_BACK, NO_ACCOUNT)
            return
        self._hold(line, "No account has this number.", return_entry, code=NO_ACCOUNT)

    def _return(self, line: EntryLine, originals: Mapping[str, AchEntry]) -> ReceiveAchReturn | None:
        entry, return_addenda = _original(line, originals), line.returned
        assert return_addenda is not None
        code = return_addenda.return_reason_code
        refusal = refusal_of(return_addenda)
        if refusal is not None:
            self._hold(line, refusal, worker.RETURN_REFUSED_REASON, code=code, is_explained=True)
            return None
        if entry is None:
            self._dishonor(line, return_addenda, UNKNOWN_ENTRY)
            return None
        return ReceiveAchReturn(
            **self._command_fields(line, entry.customer_id, entry.ach_id),
            code=code,
            direction=_direction(line),
            amount=line.entry.amount,
            trace=line.entry.trace_number,
            arrived_at=self._arrived_at,
        )

    async def _after_return(self, line: EntryLine, outcome: Outcome, originals: Mapping[str, AchEntry]) -> None:
        entry, return_addenda = _original(line, originals), line.returned
        assert return_addenda is not None
        assert entry is not None
        if outcome["status"] == "NOT_ACCEPTED":
            self._dishonor(line, return_addenda, outcome["code"])
            return
        self.report.returns += 1
        self.report.name(line, LineOutcome.RETURNED, return_addenda.return_reason_code)
        if outcome["status"] == "NO_POCKET":
            self._hold(line, "The pocket it was paid from is closed.", worker.CLOSED_POCKET_REASON)
        if entry.pocket_id is None:
            await self._fail_verification(entry, return_addenda.return_reason_code)

    def _dishonor(self, line: EntryLine, return_addenda: ReturnAddenda, code: str) -> None:
        """Hold the money of a return that is not accepted in suspense, and dishonor the return."""
        why = f"A return under {return_addenda.return_reason_code} that fits no payment ({code})."
        is_international = line.batch.is_international
        self._hold(
            line, why, returns.INTERNATIONAL_REASON if is_international else self._return_of(line, code, why), code=code
        )

    def _noc(self, line: EntryLine, originals: Mapping[str, AchEntry]) -> RecordNoc | None:
        entry, noc_addenda = _original(line, originals), line.changed
        assert noc_addenda is not None
        if entry is None:
            self.report.name(line, LineOutcome.FITS_NO_ENTRY, noc_addenda.change_code)
            return None
        fields = self._command_fields(line, entry.customer_id, entry.ach_id)
        corrected = PartyField.TEXT.seal(self._keys.of(entry.customer_id), noc_addenda.corrected_data)
        return RecordNoc(**fields, code=noc_addenda.change_code, corrected=corrected)

    async def _apply_corrections(self, lines: Sequence[EntryLine], originals: Mapping[str, AchEntry]) -> None:
        """Apply notifications of change to the counterparties of their entries."""
        commands = []
        for line in lines:
            entry, correction = _original(line, originals), _correction_of(line).details
            fields = await self._counterparty_fields(entry) if entry is not None and correction else None
            if fields is not None:
                key = command_id("correct", self._key(line))
                (owner,) = fields["customers"]  # for a micro-deposit, not the entry's own customer
                data_key = (await PaymentKeys.prepare(self._bank, (owner,))).of(owner)
                details = seal_details(data_key, "ach", correction)
                commands.append(CorrectAccount(**fields, key=key, details=details))
        async for _ in submit_in_lots(self._bank, commands):
            pass

    async def _fail_verification(self, entry: AchEntry, code: str) -> None:
        """Fail the verification of a counterparty whose micro-deposit was returned."""
        fields = await self._counterparty_fields(entry)
        if fields is not None:
            reason = f"A micro-deposit came back under {code}."
            key = command_id("fail", entry.ach_id)
            await self._bank.engine.submit(FailVerification(**fields, key=key, reason=reason))

    async def _counterparty_fields(self, entry: AchEntry) -> dict[str, Any] | None:
        """Return the fields of a command on an entry's counterparty. Micro-deposits are entries of the bank."""
        counterparty_id = entry.counterparty_id
        owner = counterparty_id and await self._bank.directory.find("counterparty", counterparty_id)
        if not owner:
            return None
        ids = {"counterparty_id": counterparty_id, "references": (counterparty_id,)}
        return {"caller": CALLER, "customers": (owner.customer_id,), **ids}

    @property
    def _own_routing_prefix(self) -> str:
        return self._bank.settings.bank_routing_number[:8]

    def _key(self, line: EntryLine) -> UUID:
        """Return the idempotency key of a line's command; a retry after a refusal has a new one."""
        refused = self._refused.get(line.number, 0)
        key_name = f"ach-line:{line.number}:{refused}" if refused else f"ach-line:{line.number}"
        return command_id(key_name, self._file_id)

    async def _originals(self, chunk: Sequence[EntryLine]) -> Mapping[str, AchEntry]:
        traces = [each.original_trace for each in chunk if each.original_trace is not None]
        return await store.find_by_traces(self._bank.pool, traces) if traces else {}

    async def _submit(
        self, lines: Iterable[tuple[EntryLine, Command | None]]
    ) -> AsyncIterator[tuple[EntryLine, Outcome]]:
        """Submit the commands of lines; lines without one have already been held or reported."""
        commands = [(line, command) for line, command in lines if command is not None]
        at = (line for line, _ in commands)
        try:
            async for _, answer in submit_in_lots(self._bank, (command for _, command in commands)):
                yield next(at), answer.outcome
        except (Refused, NotFound) as refused:
            raise _LineRefused(refused.code, refused.detail) from None

    def _hold(
        self,
        line: EntryLine,
        why: str,
        disposition: ReturnEntry | str,
        *,
        code: str | None = None,
        is_explained: bool = False,
    ) -> None:
        """Hold an entry in suspense, with the return to send or why it stays; the report may give the reason."""
        incoming = self._incoming_of(line)
        details = {
            "company_name": incoming.company,
            "company_entry_description": incoming.purpose,
            "individual_identification_number": incoming.identification or None,
            "trace_number": incoming.trace,
            "ach_direction": AchWay.RECEIVING,
            "account_number": incoming.account_number,
            "description": incoming.purpose,
            **(
                {NOT_RETURNABLE: disposition}
                if isinstance(disposition, str)
                else {"answer": msgspec.to_builtins(disposition)}
            ),
        }
        item_id = command_id("ach-unclaimed", self._key(line))
        self._suspense_items.append(
            worker.UnclaimedPayment(item_id, _direction(line), line.entry.amount, reason=why, details=details)
        )
        self.report.held += 1
        self.report.name(line, LineOutcome.HELD, code, why if is_explained else "")


_SEPARATORS = str.maketrans("", "", " -")
_INFORMATION_WIDTH = 44
"""Characters of the information of a return."""


def _account(line: EntryLine) -> str:
    # Some banks write an account number in groups, or right-aligned.
    return f"{line.entry.routing_number}:{line.entry.dfi_account_number.translate(_SEPARATORS)}"


def _original(line: EntryLine, originals: Mapping[str, AchEntry]) -> AchEntry | None:
    return originals.get(line.original_trace or "")


def _direction(line: EntryLine) -> Direction:
    return Direction.DEBIT if line.entry.is_debit else Direction.CREDIT


def _correction_of(line: EntryLine) -> Correction:
    """Return the corrections of an entry; none for an international one, whose fields are longer."""
    if line.changed is None or line.batch.is_international:
        return Correction()
    return correction_of(line.changed.change_code, line.changed.corrected_data)
