"""Carries out the rows of an approved batch of members, each as the transfer request that it becomes.

Running it again has no further effect: the id of each request is that of its row, and the commands derive from it.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import find_payees
from billfold.approvals import transfer_orders, transfer_requests
from billfold.approvals.execute_transfers import commands_for, execute_in_order
from billfold.approvals.series.worker import RUN_REASONS, bank_for
from billfold.approvals.store.approved_requests import load_payment_settings
from billfold.approvals.store.policies import ApprovedList, find_refusals
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.types import Actor
from billfold.audit.record import audited
from billfold.batches import rules, store
from billfold.batches.commands import CommandList
from billfold.batches.types import REUSED, ROWS_PER_PART, Batch, BatchRow, RowProblem, RowResult
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.platform.errors import BillfoldError, InvariantError, NotFound, Refused
from billfold.platform.ids import command_id

BATCH_CALLER: Final = "batch"
"""The caller of the command that carries out all rows of a batch at once; its key is the batch's id."""
_RAN = "SELECT true FROM command WHERE customer_id = $1 AND command_id = $2"


async def carry_out_each(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> list[RowResult]:
    """Carry out rows of a batch, each by itself, and return their results."""
    by = await _actor(bank, batch)
    objections = await _find_objections(bank, batch, rows)
    await _insert_requests(bank, by, batch, rows, objections=objections)
    try:
        await execute_in_order(bank, batch.customer_id, [key for row in rows if (key := row.object_id)])
    except Exception:  # the job runs again, for what failed and the rows to come
        await store.record_results(bank.pool, batch, list((await _find_made(bank, by, rows)).values()))
        raise
    return await _read_results(bank, by, rows)


async def carry_out_all(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> tuple[list[RowResult], str | None]:
    """Carry out the rows in one command, all or none; return their results, and the code if they were refused."""
    by = await _actor(bank, batch)
    # After an interruption the answer is that of the command, whatever has changed since.
    if await was_submitted(bank, batch.customer_id, BATCH_CALLER, batch):
        problems = await submit_all_or_none(bank, rows, list_of((), BATCH_CALLER, batch, batch.customer_id))
    else:
        objections = await _find_objections(bank, batch, rows)
        problems = {n: RowProblem(code=each.code, detail=each.detail) for n, each in objections.items()}
        made = await _find_made(bank, by, rows)
        problems |= {n: result.problem for n, result in made.items() if result.problem is not None}
        if not problems:
            problems = await _submit(bank, batch, [row for row in rows if row.row_no not in made])
    if not problems:
        for start in range(0, len(rows), ROWS_PER_PART):  # an audit entry can prove about 80
            await _insert_requests(bank, by, batch, rows[start : start + ROWS_PER_PART], objections={})
    return results_of_all(rows, problems)


def results_of_all(rows: Sequence[BatchRow], problems: Mapping[int, RowProblem]) -> tuple[list[RowResult], str | None]:
    """Return the results of rows of which all were carried out, or none; the code of the batch if none was."""
    if not problems:
        return [RowResult(row.row_no) for row in rows], None
    other = RowProblem(code=rules.BATCH_REFUSED, detail="Another row of the batch cannot be carried out.")
    return [RowResult(row.row_no, problems.get(row.row_no, other)) for row in rows], rules.BATCH_REFUSED


async def _actor(bank: Bank, batch: Batch) -> Actor:
    """Return the bank as the actor on the day of the request, on which its transfers use up caps."""
    by = bank_for(bank, batch, await bank.now(), name="A batch")
    return dataclasses.replace(by, business_date=batch.business_date)


async def _find_objections(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> dict[int, BillfoldError]:
    """Return why rows may no longer be carried out: their requester, or their payee, has changed."""
    ring = await bank.ports[DataKeys].load(bank.pool, (batch.customer_id,))
    contents = {row.row_no: _content_of(row) for row in rows}
    named = {each.counterparty_id for each in contents.values() if each.counterparty_id is not None}
    async with bank.pool.acquire() as conn:
        try:
            await transfer_requests.check_requester(conn, batch)
        except Refused as refusal:
            return dict.fromkeys(contents, refusal)
        payees = {key: payee for _, key, payee in await find_payees(conn, [batch.customer_id], list(named))}
        unverified_wires = await transfer_orders.allows_unverified_wires(conn, batch.customer_id)
    found: dict[int, BillfoldError] = {}
    for number, content in contents.items():
        if content.counterparty_id is None:
            continue
        try:
            now = transfer_orders.payee_of(content, payees, unverified_wires=unverified_wires)
            transfer_orders.require_same_payee(now, content, ring.get(batch.customer_id))
        except BillfoldError as wrong:
            found[number] = wrong
    return found


def _content_of(row: BatchRow) -> RequestContent:
    assert row.content is not None
    return transfer_orders.decode_content(row.content)


async def _insert_requests(
    bank: Bank, by: Actor, batch: Batch, rows: Sequence[BatchRow], *, objections: Mapping[int, BillfoldError]
) -> None:
    """Insert the approved requests of rows, as far as they were not made yet."""
    async with audited(
        bank, batch.customer_id, by.origin, "batch.carried_out", resource_id=batch.request_id, now=by.wall
    ) as audited_action:
        made = False
        for row in rows:
            assert row.terms is not None
            wrong = objections.get(row.row_no)
            made |= await transfer_requests.insert_content(
                audited_action,
                by,
                _content_of(row),
                terms=msgspec.structs.replace(row.terms, required=0),
                status="APPROVED",
                batch_id=batch.request_id,
                reason=None if wrong is None else RUN_REASONS.get(wrong.code, "INVALID_TRANSFER"),
            )
        if not made:
            audited_action.skip()


async def _read_results(bank: Bank, by: Actor, rows: Sequence[BatchRow]) -> list[RowResult]:
    made = await _find_made(bank, by, rows)
    if len(made) < len(rows):
        raise InvariantError("a row of a batch was carried out, and its request was not executed")
    return list(made.values())


async def _find_made(bank: Bank, by: Actor, rows: Sequence[BatchRow]) -> dict[int, RowResult]:
    """Return the results of rows whose transfer was executed, for this batch or for another row with the same key."""
    ids = [row.object_id for row in rows if row.object_id is not None]
    found = await TRANSFER_REQUESTS.list_named(bank.pool, by.customer_id, ids, now=by.now)
    # One of no batch, whatever its status, was not asked for as a row: the key is taken, and its row fails alone.
    requests = {each.request_id: each for each in found if each.batch_id is None or each.execution != "NOT_STARTED"}
    results = {}
    for row in rows:
        if row.object_id is None or (request := requests.get(row.object_id)) is None:
            continue
        problem = None
        if request.batch_id is None or request.asked != transfer_requests.fingerprint_of(_content_of(row)):
            problem = REUSED
        elif request.execution == "REJECTED":
            code, detail = rules.problem_of(request.reason or "INVALID_TRANSFER")
            problem = RowProblem(code=code, detail=detail)
        results[row.row_no] = RowResult(row.row_no, problem)
    return results


async def _submit(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> dict[int, RowProblem]:
    """Carry out the rows in one command; return why they are refused, by their numbers."""
    if not rows:
        return {}
    async with bank.pool.acquire() as conn:
        unverified_wires, has_policy = await load_payment_settings(conn, batch.customer_id)
        contents = [_content_of(row) for row in rows]
        if has_policy:
            origin = ApprovedList(batch.request_id, batch.member_id, batch.business_date, batch.created_at)
            refused = await find_refusals(bank, conn, batch.customer_id, contents, batch=origin)
            if refused:
                return {
                    row.row_no: RowProblem(code=wrong.code, detail=wrong.detail)
                    for row, content in zip(rows, contents, strict=True)
                    if (wrong := refused.get(content.request_id)) is not None
                }
        made = await commands_for(bank, conn, batch.customer_id, contents=contents, unverified_wires=unverified_wires)
    gone = {
        row.row_no: RowProblem(code=each.code, detail=each.detail)
        for row, each in zip(rows, made, strict=True)
        if isinstance(each, NotFound)
    }
    parts = [each for each in made if isinstance(each, Command)]
    return gone or await submit_all_or_none(bank, rows, list_of(parts, BATCH_CALLER, batch, batch.customer_id))


def list_of(
    parts: Sequence[Command], caller: str, batch: Batch, payer: UUID, *, kind: type[CommandList] = CommandList
) -> CommandList:
    """Return the command that carries out all parts, which a customer pays; its key is the batch's id."""
    return kind(
        caller=caller,
        key=batch.request_id,
        request_hash=batch.content_hash,
        customers=tuple(dict.fromkeys([payer, *(each for part in parts for each in part.customers)])),
        references=tuple(dict.fromkeys(each for part in parts for each in part.references)),
        parts=tuple(parts),
    )


async def submit_all_or_none(bank: Bank, rows: Sequence[BatchRow], command: CommandList) -> dict[int, RowProblem]:
    """Submit the command of rows; return why rows are refused, by their numbers."""
    try:
        await bank.engine.submit(command)
    except Refused as refusal:
        if refusal.code != rules.BATCH_REFUSED:
            return {row.row_no: RowProblem(code=refusal.code, detail=refusal.detail) for row in rows}
        numbers = {str(row.object_id): row.row_no for row in rows}
        parts = msgspec.convert(refusal.facts["parts"], list[_RefusedPart])
        return {numbers[each.key]: RowProblem(code=each.code, detail=each.detail) for each in parts}
    return {}


class _RefusedPart(msgspec.Struct):
    """The refusal of a part of a list, whose key is the id of its transfer."""

    key: str
    code: str
    detail: str


async def was_submitted(bank: Bank, payer: UUID, caller: str, batch: Batch) -> bool:
    """Tell whether the command of a batch has run before."""
    return await bank.pool.fetchval(_RAN, payer, command_id(caller, batch.request_id)) is True
