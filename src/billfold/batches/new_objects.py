"""Batches of counterparties and of Pockets: each row is made as a single one is, after the approval of the list."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.requests import (
    command_content,
    limit_new_counterparty,
    uses_of_counterparties,
)
from billfold.approvals import rules as approval_rules
from billfold.approvals import transfer_requests
from billfold.approvals.store.approval_rules import requirement_for_change
from billfold.approvals.types import Actor, ApprovalRequirement
from billfold.batches import carry_out, members, partners, store
from billfold.batches.forms import COMMANDS, LISTS, ROW_CALLERS, NewObject, read_command
from billfold.batches.members import NewBatch, problem_from
from billfold.batches.preview import RUN_MAX, FoundInBatch
from billfold.batches.rows import problems_of, require_rows
from billfold.batches.store import BATCHES, PARTNER_BATCHES
from billfold.batches.types import REUSED, ROWS_MAX, Batch, BatchKind, BatchRow, ReadRow, RowProblem, RowResult
from billfold.http.caller import Call
from billfold.http.counts import count_object
from billfold.http.raw_request import in_body
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage, uses_of
from billfold.ledger.customers import CustomerRow, require_active
from billfold.ledger.dry_run import dry_run_in_order
from billfold.ledger.engine.pending_command import Answer, answer_from_outcome
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.platform.database.usage_counts import count_usage, require_left, return_usage
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound, Refused
from billfold.platform.ids import command_id, derive

_RAN = """
SELECT command_id, request_hash, accepted, outcome FROM command WHERE customer_id = ANY($1) AND command_id = ANY($2)
"""


async def create_batch(caller: Caller, bank: Bank, new: NewBatch) -> Batch:
    """Create a batch of a partner. Raises as `partners.create_batch`."""
    rows = await _read_rows(caller, bank, new, caller.key_owner)
    problems = _found_in(new, rows) or _find_other_owners(new)
    require_rows(new.rows, problems, new.mode)
    if await PARTNER_BATCHES.find(bank.pool, caller.own_customer_id, new.batch_id, now=caller.now) is None:
        await _require_left(bank, new, rows)
    return await partners.insert_batch(caller, bank, new, rows)


def _find_other_owners(new: NewBatch) -> dict[int, RowProblem]:
    """Return the problems of rows of an atomic batch that name another customer than the first."""
    owners = {row.number: row.order.customer_id for row in new.rows if row.order is not None}
    first = next(iter(owners.values()), None)
    detail = "is another customer than that of the first row. An atomic batch is of one"
    other = RowProblem(code="value_error", detail=detail, field="customer_id")
    return {n: other for n, owner in owners.items() if new.mode == "ATOMIC" and owner != first}


async def request_batch(caller: Call, bank: Bank, by: Actor, customer: CustomerRow, new: NewBatch) -> Batch:
    """Request a batch, approved as one if a single counterparty would be. Raises as `members.request_batch`."""
    require_active(customer.account_status)
    rows = await _read_rows(caller, bank, new, f"{by.customer_id}:{by.member_id}")
    if await BATCHES.find(bank.pool, by.customer_id, new.batch_id, now=by.now) is None:
        await _require_left(bank, new, rows)
    async with BATCHES.audited(by, "created", new.batch_id, kind=new.kind, rows=len(rows)) as audited_action:
        if (existing := await members.find_same(audited_action.conn, by, new)) is not None:
            audited_action.skip()
            return existing
        require_rows(new.rows, _found_in(new, rows), new.mode)
        terms = await _requirement(audited_action.conn, by, new)
        return await members.insert_batch(audited_action, by, new, rows, terms=terms)


async def _require_left(bank: Bank, new: NewBatch, rows: Sequence[BatchRow]) -> None:
    """Refuse an atomic batch above the limits of use, which is counted when it is carried out. Raises InvalidInput."""
    if new.mode != "ATOMIC" or any(row.content is None for row in rows):
        return
    _, waiting = await _find_ran(bank, new.kind, None, rows)
    try:
        if uses := await _uses_of(bank, list(waiting.values())):
            async with bank.pool.acquire() as conn:
                await require_left(conn, bank.settings.limits, uses, wall_now())
    except Refused as refusal:
        place = "csv" if new.rows[0].place else "rows"
        raise InvalidInput.at("body", place, msg=f"cannot be added as one: {refusal.detail}") from None


def _found_in(new: NewBatch, rows: Sequence[BatchRow]) -> dict[int, RowProblem]:
    """Return the problems of rows that could be read."""
    pairs = zip(new.rows, rows, strict=True)
    return {row.row_no: row.problem for sent, row in pairs if row.problem is not None and not sent.problems}


async def preview(caller: Call, bank: Bank, by: Actor | None, new: NewBatch) -> FoundInBatch:
    """Preview a batch of a member, or of a partner. Raises `approval-impossible`, InvalidInput at `reviewers`."""
    rows = await _read_rows(caller, bank, new, "")
    problems = {each.number: list(each.problems) for each in new.rows if each.problems}
    found = _found_in(new, rows)
    problems |= {number: [each] for number, each in (found or _find_other_owners(new)).items()}
    if not problems:
        await _require_left(bank, new, rows)
    kept = {row.row_no: _command(new.kind, None, row) for row in rows if row.row_no not in problems}
    async with bank.pool.acquire() as conn:
        terms = None if by is None or not kept else await _requirement(conn, by, new)
        if 0 < len(kept) <= RUN_MAX:
            async with conn.transaction(isolation="repeatable_read", readonly=True):
                runs = await dry_run_in_order(conn, bank, list(kept.values()))
            refused = {n: run for n, run in zip(kept, runs, strict=True) if isinstance(run, BillfoldError)}
            problems |= {n: [problem_from(each)] for n, each in refused.items()}
    return FoundInBatch(problems=problems, amount=0, terms=terms, pockets=[])


async def _requirement(conn: Connection, by: Actor, new: NewBatch) -> ApprovalRequirement:
    if new.kind == "POCKETS":
        return ApprovalRequirement(required=0)
    terms = await requirement_for_change(conn, by.customer_id, "NEW_COUNTERPARTY")
    if not terms.required:
        return terms
    with in_body():
        return await transfer_requests.with_candidates(
            conn, by, terms, reviewers=new.reviewers, needs=approval_rules.MAY_CONFIRM
        )


async def _read_rows(caller: Call, bank: Bank, new: NewBatch, owner: str) -> list[BatchRow]:
    """Return rows as stored. A key is one of the customer: a partner may use it again for another."""
    # What is wrong with an on_us row tells which network addresses are in use: as many are told as can be previewed and
    # added.
    subject, most = caller.only_customer_id, 2 * bank.settings.limits["counterparties.customer"]
    if isinstance(caller, Caller):
        subject, most = caller.partner_id, ROWS_MAX
    named = sum(getattr(row.order, "type", None) == "on_us" for row in new.rows)
    if named and subject is not None:
        what = "network addresses"
        await count_object(bank.pool, subject, what, limit=most, wall=caller.wall, more=named, what=what)
    found = []
    for row in new.rows:
        customer = None if row.order is None else row.order.customer_id
        of = owner if customer is None else f"{owner}:{customer}"
        found.append(await _read_row(caller, bank, new.kind, row=row, key=members.row_id(bank, of, new.batch_id, row)))
    return found


async def _read_row(caller: Call, bank: Bank, kind: BatchKind, *, row: ReadRow, key: UUID) -> BatchRow:
    content, owner, problems = dict[str, Any](), None, row.problems
    if row.order is not None:
        try:
            owner = await caller.owner(bank, row.order.customer_id)
            content = command_content(await read_command(caller, bank, owner, order=row.order))
        except InvalidInput as wrong:
            problems = problems_of(wrong.errors, row.place)
        except NotFound as wrong:
            problems = (RowProblem(code=wrong.code, detail=wrong.detail, field="customer_id"),)
    if problems:
        return BatchRow(row_no=row.number, row_key=row.key, state="FAILED", problem=problems[0])
    text = approval_rules.text_of(content | {"customer_id": owner, "key": key})
    return BatchRow(
        row_no=row.number,
        row_key=row.key,
        content=text,
        content_hash=approval_rules.hash_of(text),
        object_id=derive(bank.seed, command_id(ROW_CALLERS[kind], key), 0),
        amount=0,
        terms=ApprovalRequirement(required=0),
    )


async def carry_out_each(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> list[RowResult]:
    """Make what rows order, each by itself, and return the results."""
    results, waiting = await _find_ran(bank, batch.kind, batch, rows)
    answers: dict[int, Answer | BillfoldError] = {**await _find_refused(bank, batch, waiting)}
    left = {number: each for number, each in waiting.items() if number not in answers}
    answers |= zip(left, await bank.engine.submit_all(list(left.values())), strict=True)
    failed: BillfoldError | None = None
    for number, answer in answers.items():
        if isinstance(answer, Answer | Refused | NotFound | InvalidInput):
            results.append(RowResult(number, _problem_in(answer)))
        else:
            failed = answer
    if failed is not None:  # the job runs again: a row that was added all the same is found
        await store.record_results(bank.pool, batch, results)
        raise failed
    return results


async def carry_out_all(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> tuple[list[RowResult], str | None]:
    """Make what the rows order in one command; return the results, and the code if they were refused."""
    results, waiting = await _find_ran(bank, batch.kind, batch, rows)
    problems = {each.number: each.problem for each in results if each.problem is not None}
    if waiting and not problems:
        try:
            await _check_requester(bank, batch)
            uses = await _uses_of(bank, list(waiting.values()))
            async with bank.pool.acquire() as conn:
                await count_usage(conn, bank.settings.limits, uses, wall_now())
        except Refused as refusal:
            problems = dict.fromkeys(waiting, problem_from(refusal))
        else:
            problems = await _add_all(bank, batch, rows, waiting, uses)
    return carry_out.results_of_all(rows, problems)


async def _add_all(
    bank: Bank,
    batch: Batch,
    rows: Sequence[BatchRow],
    waiting: Mapping[int, NewObject],
    uses: Mapping[tuple[str, UUID], int],
) -> dict[int, RowProblem]:
    """Make what rows order in one command, whose uses are kept if it is carried out."""
    parts = tuple(waiting.values())
    key_owner = carry_out.BATCH_CALLER if batch.partner_id is None else f"partner:{batch.partner_id}"
    command = carry_out.list_of(parts, key_owner, batch, parts[0].customers[0], kind=LISTS[batch.kind])
    keyed = [msgspec.structs.replace(row, object_id=waiting[row.row_no].key) for row in rows if row.row_no in waiting]
    is_done = False
    try:
        problems = await carry_out.submit_all_or_none(bank, keyed, command)
        is_done = not problems
    finally:
        if not is_done:
            async with bank.pool.acquire() as conn:
                await return_usage(conn, uses, wall_now())
    return problems


async def _uses_of(bank: Bank, commands: Sequence[NewObject]) -> dict[tuple[str, UUID], int]:
    """Return what commands of one kind and one customer use up of the limits of use."""
    if added := [each for each in commands if isinstance(each, AddCounterparty)]:
        return await uses_of_counterparties(bank, added)
    if not commands:
        return {}
    owner = commands[0].customers[0]
    entry = await bank.directory.find("customer", owner)
    partner_id = None if entry is None else entry.partner_id
    return uses_of("pockets", customer=owner, partner=partner_id, more=len(commands))


async def _find_ran(
    bank: Bank, kind: BatchKind, batch: Batch | None, rows: Sequence[BatchRow]
) -> tuple[list[RowResult], dict[int, NewObject]]:
    """Return the results of rows whose key has made an object before, and the commands of the others."""
    commands = {row.row_no: _command(kind, batch, row) for row in rows}
    ids = ([each.customers[0] for each in commands.values()], [each.command_id for each in commands.values()])
    ran = {each["command_id"]: each for each in await bank.pool.fetch(_RAN, *ids)}
    results = []
    for number, command in commands.items():
        if (found := ran.get(command.command_id)) is None:
            continue
        outcome = msgspec.json.decode(found["outcome"])
        answer = answer_from_outcome(outcome, accepted=found["accepted"], replayed=True)
        is_same = found["request_hash"] == command.request_hash
        results.append(RowResult(number, _problem_in(answer) if is_same else REUSED))
    return results, {number: each for number, each in commands.items() if each.command_id not in ran}


def _command(kind: BatchKind, batch: Batch | None, row: BatchRow) -> NewObject:
    assert row.content is not None
    assert row.content_hash is not None
    fields = msgspec.json.decode(row.content)
    who = {"caller": ROW_CALLERS[kind], "key": fields.pop("key"), "customers": (fields.pop("customer_id"),)}
    command: NewObject = msgspec.convert({**fields, **who}, COMMANDS[kind])
    origin = None if batch is None else _origin(batch)
    return msgspec.structs.replace(command, request_hash=row.content_hash, origin=origin)


def _origin(batch: Batch) -> Origin:
    if batch.partner_id is not None:
        return Origin(kind="PARTNER", name=batch.client_id, client_id=f"partner-user:{batch.member_id}")
    kind: Any = "CLIENT" if batch.user_id is None else "MEMBER"
    return Origin(kind=kind, member_id=batch.member_id, client_id=batch.client_id or None)


async def _check_requester(bank: Bank, batch: Batch) -> None:
    if batch.partner_id is None:
        async with bank.pool.acquire() as conn:
            await transfer_requests.check_requester(conn, batch)


async def _find_refused(bank: Bank, batch: Batch, commands: Mapping[int, NewObject]) -> dict[int, BillfoldError]:
    """Return why rows may not be made now: the requester has changed, or a limit is reached."""
    refused: dict[int, BillfoldError] = {}
    try:
        await _check_requester(bank, batch)
    except Refused as refusal:
        return dict.fromkeys(commands, refusal)
    for number, command in commands.items():
        try:
            if isinstance(command, AddCounterparty):
                await limit_new_counterparty(bank, command)
            else:
                await limit_usage(bank, "pockets", command.customers[0])
        except Refused as refusal:
            refused[number] = refusal
    return refused


def _problem_in(answer: Answer | BillfoldError) -> RowProblem | None:
    return None if isinstance(answer, Answer) else problem_from(answer)
