"""Batches of partners: their rows become the commands of the Partner API, as if each had been sent alone."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.customers.store import require_feature
from billfold.approvals import rules as approval_rules
from billfold.approvals.store.approval_rules import insert
from billfold.approvals.types import ApprovalRequirement
from billfold.audit.record import audited_by
from billfold.batches import carry_out, rules, store
from billfold.batches.members import NewBatch, columns_of, note_of, row_id
from billfold.batches.rows import require_rows
from billfold.batches.store import PARTNER_BATCHES
from billfold.batches.types import REUSED, Batch, BatchRow, ReadRow, RowProblem, RowResult, StoredTransfer, TransferRow
from billfold.data_keys.keys import DataKeys, PartyField
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.engine.pending_command import Answer, answer_from_outcome
from billfold.payments.on_us.routes import PeerLookup, ordered, transfer_command
from billfold.payments.on_us.schemas import AccountRef, CreateTransfer
from billfold.payments.wires.routes import WIRES_FEATURE, wire_command
from billfold.payments.wires.schemas import CreateWire
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound, Refused
from billfold.platform.ids import command_id

TYPES = frozenset(
    {"INTERNAL_REALLOCATION", "PEER_TO_PEER", "WIRE", "PARTNER_CUSTOMER_FUNDING", "PARTNER_CUSTOMER_DEFUNDING"}
)
_ANSWER = "SELECT accepted, outcome FROM command WHERE customer_id = $1 AND command_id = $2 AND request_hash = $3"


async def create_batch(caller: Caller, bank: Bank, new: NewBatch) -> Batch:
    """Create a batch, which a worker carries out; the same request returns the existing one.

    Raises InvalidInput with the problems of all rows of an atomic batch, Refused `idempotency-key-reused`.
    """
    made, problems = await read_batch(caller, bank, new)
    require_rows(new.rows, problems, new.mode)
    return await insert_batch(caller, bank, new, made)


async def read_batch(caller: Caller, bank: Bank, new: NewBatch) -> tuple[list[BatchRow], dict[int, RowProblem]]:
    """Return the rows as they would be stored, and what is wrong with them."""
    made = await asyncio.gather(*(_read_row(caller, bank, new, row) for row in new.rows))
    problems = {row.row_no: row.problem for row in made if row.problem is not None}
    if new.mode == "ATOMIC" and not problems:
        problems = await _find_other_payers(caller, bank, new.rows)
    return made, problems


async def _read_row(caller: Caller, bank: Bank, new: NewBatch, row: ReadRow) -> BatchRow:
    order = row.order
    if order is None:
        return BatchRow(row_no=row.number, state="FAILED", problem=row.problems[0])
    field = "from_pocket_id"
    try:
        owner, _ = await caller.pocket(bank, order.from_pocket_id)
        field = "to_pocket_id"
        if order.to_pocket_id is not None:
            await caller.pocket(bank, order.to_pocket_id)
    except NotFound as wrong:
        problem = RowProblem(code=wrong.code, detail=wrong.detail, field=field)
        return BatchRow(row_no=row.number, row_key=row.key, state="FAILED", problem=problem)
    if order.wire_instructions is not None:
        data_key = await bank.ports[DataKeys].of(bank.pool, owner)
        order = msgspec.structs.replace(
            order, wire_instructions=PartyField.TEXT.seal(data_key, order.wire_instructions)
        )
    text = approval_rules.text_of(await _stored(bank, owner, order))
    return BatchRow(
        row_no=row.number,
        row_key=row.key,
        content=text,
        content_hash=approval_rules.hash_of(text),
        object_id=row_id(bank, caller.key_owner, new.batch_id, row),
        amount=order.amount_usdc,
    )


async def _stored(bank: Bank, payer: UUID, order: TransferRow) -> TransferRow:
    """Return a row as it is stored: its note sealed, and its hash that of earlier releases if it has no new field."""
    note = await note_of(bank, payer, order)
    plain = msgspec.structs.replace(
        order, idempotency_key=None, hold_id=order.hold_id or UNSET, external_id=UNSET, metadata=UNSET
    )
    return plain if note is None else StoredTransfer(**msgspec.structs.asdict(plain), attached=note, customer_id=payer)


async def _find_other_payers(caller: Caller, bank: Bank, rows: Sequence[ReadRow]) -> dict[int, RowProblem]:
    """Return the problems of rows that another customer pays than the first: one command moves the money of one."""
    payers = [
        (row.number, (await caller.pocket(bank, row.order.from_pocket_id))[0]) for row in rows if row.order is not None
    ]
    detail = "belongs to another customer than that of the first row. An atomic batch is paid by one"
    problem = RowProblem(code="value_error", detail=detail, field="from_pocket_id")
    return {number: problem for number, payer in payers if payer != payers[0][1]}


async def insert_batch(caller: Caller, bank: Bank, new: NewBatch, rows: Sequence[BatchRow]) -> Batch:
    """Insert a batch, which needs no approval. Raises Refused `idempotency-key-reused`."""
    owner = caller.own_customer_id
    day, free = bank.calendars.business_date(caller.now), ApprovalRequirement(required=0)
    async with audited_by(caller, bank, owner, "batch.created", resource_id=new.batch_id) as audited_action:
        conn = audited_action.conn
        made = await insert(
            audited_action,
            PARTNER_BATCHES.table,
            customer_id=owner,
            partner_id=caller.partner_id,
            member_id=caller.user_id,
            client_id=caller.partner_slug,
            status="APPROVED",
            **columns_of(new, rows, free, now=caller.now, business_date=day),
        )
        found = await PARTNER_BATCHES.get(conn, owner, new.batch_id, now=caller.now)
        if not made:
            audited_action.skip()
            if found.asked != new.asked:
                raise Refused("idempotency-key-reused", "This key already belongs to another request. Send a new one.")
            return found
        await store.insert_rows(conn, owner, new.batch_id, rows)
        await PARTNER_BATCHES.schedule_next(conn, found, now=caller.now)
        return found


async def carry_out_each(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> list[RowResult]:
    """Carry out rows of a batch, each by itself, and return their results."""
    results, left = await results_of_made(bank, batch.customer_id, batch.request_id, rows)
    commands: dict[int, Command] = {}
    answers: dict[int, Answer | BillfoldError] = {}
    for row, made in zip(left, await _commands_of(bank, batch, left), strict=True):
        if isinstance(made, Command):
            commands[row.row_no] = made
        else:
            answers[row.row_no] = await _find_answer(bank, batch, row) or made
    answers |= zip(commands, await bank.engine.submit_all(list(commands.values())), strict=True)
    failed: BillfoldError | None = None
    for number, answer in answers.items():
        if isinstance(answer, Answer):
            results.append(RowResult(number, _rejection_in(answer)))
        elif isinstance(answer, Refused | NotFound | InvalidInput):
            results.append(RowResult(number, RowProblem(code=answer.code, detail=answer.detail)))
        else:
            failed = answer
    if failed is not None:  # the job runs again, for this row and those to come
        await store.record_results(bank.pool, batch, results)
        raise failed
    return results


async def _find_answer(bank: Bank, batch: Batch, row: BatchRow) -> Answer | BillfoldError | None:
    """Return the answer of the command of a row, if it ran before an interruption."""
    assert row.object_id is not None
    caller = await _caller_of(bank, batch)
    try:
        payer, _ = await caller.pocket(bank, order_of(row).from_pocket_id)
    except NotFound:
        return None
    key = command_id(caller.key_owner, row.object_id)
    found = await bank.pool.fetchrow(_ANSWER, payer, key, row.content_hash)
    if found is None:
        return None
    return answer_from_outcome(msgspec.json.decode(found["outcome"]), accepted=found["accepted"], replayed=True)


async def carry_out_all(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> tuple[list[RowResult], str | None]:
    """Carry out the rows in one command, all or none; return their results, and the code if they were refused."""
    key_owner, parts = f"partner:{batch.partner_id}", list[Command]()
    payer, _ = await (await _caller_of(bank, batch)).pocket(bank, order_of(rows[0]).from_pocket_id)
    if await carry_out.was_submitted(bank, payer, key_owner, batch):
        command = carry_out.list_of((), key_owner, batch, payer)
        return carry_out.results_of_all(rows, await carry_out.submit_all_or_none(bank, rows, command))
    results, left = await results_of_made(bank, batch.customer_id, batch.request_id, rows)
    problems = {each.number: each.problem for each in results if each.problem is not None}
    for row, made in zip(left, await _commands_of(bank, batch, left), strict=True):
        if isinstance(made, Command):
            parts.append(made)
        else:
            problems[row.row_no] = RowProblem(code=made.code, detail=made.detail)
    if left and not problems:
        problems |= await carry_out.submit_all_or_none(bank, left, carry_out.list_of(parts, key_owner, batch, payer))
    return carry_out.results_of_all(rows, problems)


def _rejection_in(answer: Answer) -> RowProblem | None:
    if answer.outcome.get("status") != "REJECTED":
        return None
    code, detail = rules.problem_of(answer.outcome["reason"])
    return RowProblem(code=code, detail=detail)


async def results_of_made(
    bank: Bank, customer_id: UUID, batch_id: UUID, rows: Sequence[BatchRow]
) -> tuple[list[RowResult], list[BatchRow]]:
    """Return the results of rows whose key has made a transfer in another batch, and the other rows."""
    made = await store.find_made(bank.pool, customer_id, batch_id, [row.object_id for row in rows])
    results = []
    for row in rows:
        if row.object_id in made:
            content_hash, problem = made[row.object_id]
            results.append(RowResult(row.row_no, problem if content_hash == row.content_hash else REUSED))
    return results, [row for row in rows if row.object_id not in made]


async def _commands_of(bank: Bank, batch: Batch, rows: Sequence[BatchRow]) -> list[Command | BillfoldError]:
    return await commands_of(await _caller_of(bank, batch), bank, rows)


async def commands_of(caller: Caller, bank: Bank, rows: Sequence[BatchRow]) -> list[Command | BillfoldError]:
    """Return the commands of rows, as the operation for a single transfer makes them, or why it refuses them."""
    peers = PeerLookup(bank.pool)
    found = await asyncio.gather(*(_command_of(caller, bank, peers, row) for row in rows), return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException) and not isinstance(each, Refused | NotFound | InvalidInput):
            raise each
    return found  # type: ignore[return-value]


async def _command_of(caller: Caller, bank: Bank, peers: PeerLookup, row: BatchRow) -> Command:
    order = order_of(row)
    assert row.object_id is not None
    assert row.content_hash is not None
    caller = msgspec.structs.replace(caller, key=row.object_id, fingerprint=row.content_hash)
    command = await _unnoted(caller, bank, peers, order=order, transfer_id=row.object_id)
    note = None if order.attached is UNSET else order.attached
    return command if note is None else msgspec.structs.replace(command, attached=note, noted=row.object_id)


async def _unnoted(caller: Caller, bank: Bank, peers: PeerLookup, *, order: TransferRow, transfer_id: UUID) -> Command:
    if order.type == "WIRE":
        return await _wire(caller, bank, order, transfer_id)
    data, on_us = ordered(
        CreateTransfer(
            type=order.type,
            from_account=AccountRef(id=order.from_pocket_id),
            to_account=AccountRef(id=order.to_pocket_id) if order.to_pocket_id else None,
            counterparty_id=order.counterparty_id,
            amount_usdc=order.amount_usdc,
            transfer_id=transfer_id,
            description=order.description,
            end_to_end_identification=order.end_to_end_identification,
            source=order.source,
            target=order.target,
            hold_id=order.hold_id or UNSET,
        )
    )
    return await transfer_command(caller, bank, data, peers=peers, order=on_us)


def order_of(row: BatchRow) -> StoredTransfer:
    """Return what a row orders."""
    assert row.content is not None
    return msgspec.json.decode(row.content, type=StoredTransfer)


async def _wire(caller: Caller, bank: Bank, order: TransferRow, wire_id: UUID) -> Command:
    owner, pocket_id = await caller.pocket(bank, order.from_pocket_id)
    await require_feature(bank.pool, owner, WIRES_FEATURE)
    assert order.counterparty_id is not None
    data = CreateWire(
        counterparty_id=order.counterparty_id,
        amount_usdc=order.amount_usdc,
        description=order.description,
        wire_instructions=order.wire_instructions,
        end_to_end_identification=order.end_to_end_identification,
        wire_id=wire_id,
        hold_id=order.hold_id or UNSET,
    )
    return await wire_command(caller, bank, owner, pocket_id=pocket_id, data=data)


async def _caller_of(bank: Bank, batch: Batch) -> Caller:
    """Return the caller of the batch; for each row its key is the id of the transfer."""
    assert batch.partner_id is not None
    return Caller(
        name=f"partner-user:{batch.member_id}",
        partner_id=batch.partner_id,
        partner_slug=batch.client_id,
        user_id=batch.member_id,
        own_customer_id=batch.customer_id,
        key=batch.request_id,
        fingerprint=batch.content_hash,
        operation="create_batch",
        now=await bank.now(),
        wall=wall_now(),
        host="",
        trace_id="",
        address="",
        agent=None,
    )
