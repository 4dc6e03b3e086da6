"""Recalls: requests to return a wire, ours for wires we sent and theirs for wires we received."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date
from uuid import UUID

import msgspec

from billfold.audit import record
from billfold.audit.record import AuditedAction
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.types import Origin
from billfold.payments.wires import store
from billfold.payments.wires.commands import ReturnWire, WireDirection, WireRow
from billfold.payments.wires.iso20022.types import CreditTransfer, ReturnRequest
from billfold.payments.wires.messages import fedwire_day, message_sent, queue_about
from billfold.payments.wires.rules import messages
from billfold.payments.wires.store import CaseRow, find_wire, get_outstanding
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import InvariantError, NotFound, Refused


async def recall(bank: Bank, wire_id: UUID, code: str) -> str:
    """Request the return of a wire that we sent (camt.056); return the case id.

    It can be requested again as a new case after a refusal, and when the request was accepted but the
    money, or the rest of it, has not arrived by the next Fedwire day. Refuses: wire-not-completed,
    wire-already-returned, wire-already-recalled.
    """
    wire = await get_wire(bank, wire_id)
    if wire.direction != WireDirection.OUTGOING or wire.status != "COMPLETED":
        raise Refused("wire-not-completed", f"The wire is {wire.direction} and {wire.status}.")
    if await get_outstanding(bank.pool, wire) <= 0:
        raise Refused("wire-already-returned", "The wire is already returned.")
    requests = await store.list_cases_of(bank.pool, wire_id, WireDirection.OUTGOING)
    _expect_answered(requests, today=fedwire_day(bank, await bank.now()))
    sent = await store.find_last_sent(bank.pool, wire_id, ["pacs.008"])
    message = None if sent is None else await message_sent(bank, sent)
    if not isinstance(message, CreditTransfer):
        raise InvariantError("A settled wire has no message.", wire_id=str(wire_id))
    case_id = f"{wire_id.hex}-{len(requests) + 1}" if requests else wire_id.hex
    terms = messages.return_request(message, case_id=case_id, creator=bank.settings.bank_name, reason=code)
    async with _audited_case(bank, wire, "wire.recalled", code=code) as audited:
        await queue_about(bank, audited.conn, wire_id, customer_id=wire.customer_id, kind="camt.056", terms=terms)
        case = CaseRow(
            case_id,
            WireDirection.OUTGOING,
            wire.customer_id,
            wire_id=wire_id,
            status="OPEN",
            reason=code,
            information=None,
            message=msgspec.json.encode(terms).decode(),
            opened_at=await bank.now(audited.conn),
        )
        if not await store.open_case(audited.conn, case):
            raise Refused("wire-already-recalled", "Another request for this wire is in progress. Try again.")
    return case_id


def _expect_answered(requests: Sequence[CaseRow], today: date) -> None:
    """Raise Refused if an earlier request is open, or was accepted today so that its money is in transit."""
    for case in requests:
        if case.status == "OPEN":
            detail = f"Case {case.case_id} is open: wait for its answer."
            raise Refused("wire-already-recalled", detail)
        if case.status == "ACCEPTED" and case.closed_at is not None and et_date(case.closed_at) >= today:
            detail = f"Case {case.case_id} is accepted: the wire is being returned. Wait until the next Fedwire day."
            raise Refused("wire-already-recalled", detail)


async def carry_out_return(bank: Bank, command: ReturnWire) -> Outcome:
    """Return a received wire (pacs.004), and accept its recall if one is open. Safe to repeat.

    Refuses: wire-not-completed, wire-already-returned.
    """
    outcome = (await bank.engine.submit(command)).outcome
    await _accept_open_case(bank, await get_wire(bank, command.original_id))
    return outcome


async def refuse(bank: Bank, wire_id: UUID, code: str) -> None:
    """Refuse to return a recalled wire (camt.029). Raises NotFound if no case is open."""
    wire = await get_wire(bank, wire_id)
    async with _audited_case(bank, wire, "wire.kept", code=code) as audited:
        case = await store.get_open_case(audited.conn, wire_id, WireDirection.INCOMING)
        await _answer_request(bank, audited.conn, wire, case=case, reason=code)


async def _accept_open_case(bank: Bank, wire: WireRow) -> None:
    """Accept the open case about a wire, if there is one."""
    async with bank.pool.acquire() as conn, conn.transaction():
        try:
            case = await store.get_open_case(conn, wire.wire_id, WireDirection.INCOMING)
        except NotFound:
            return
        await _answer_request(bank, conn, wire, case=case, reason=None)


async def _answer_request(bank: Bank, conn: Connection, wire: WireRow, case: CaseRow, *, reason: str | None) -> None:
    """Answer a request and close its case: refused with a reason, else accepted."""
    terms = messages.return_request_response(
        msgspec.json.decode(case.message, type=ReturnRequest),
        bank=bank.settings.bank_routing_number,
        creator=bank.settings.bank_name,
        verdict="CNCL" if reason is None else "RJCR",
        reason=reason,
    )
    await queue_about(bank, conn, wire.wire_id, customer_id=wire.customer_id, kind="camt.029", terms=terms)
    status = "ACCEPTED" if reason is None else "REFUSED"
    now = await bank.now(conn)
    await store.close_case(conn, WireDirection.INCOMING, case.case_id, status=status, now=now)


def _audited_case(bank: Bank, wire: WireRow, action: str, code: str) -> AbstractAsyncContextManager[AuditedAction]:
    return record.audited(
        bank, wire.customer_id, Origin.operator(), action, resource_id=wire.wire_id, details={"reason": code}
    )


async def get_wire(bank: Bank, wire_id: UUID) -> WireRow:
    """Return a wire. Raises NotFound."""
    wire = await find_wire(bank.pool, wire_id)
    if wire is None:
        raise NotFound("There is no such wire.")
    return wire
