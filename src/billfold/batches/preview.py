"""Previews a batch of members without writing anything: what is wrong with rows, the approval, and the Pockets."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets.store import get_pocket
from billfold.approvals import transfer_orders
from billfold.approvals.batch_preview import PayeeHistory, joined, read_history
from billfold.approvals.execute_transfers import run_in_order
from billfold.approvals.transfer_orders import RequestContent
from billfold.approvals.transfer_preview import (
    PreviewedTransfer,
    TransferPreview,
    preview_of_payment,
    preview_of_run,
    render_preview,
)
from billfold.approvals.types import Actor, ApprovalRequirement
from billfold.batches import members, partners, rules, store
from billfold.batches.members import NewBatch
from billfold.batches.types import ROWS_MAX, BatchRow, RowProblem
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.customers import CustomerRow
from billfold.ledger.dry_run import DryRun, dry_run_in_order
from billfold.platform.database.connection import Connection
from billfold.platform.errors import BillfoldError, Refused

RUN_MAX: Final = 200
"""The most rows that are run for a preview: a request must not keep others waiting."""


class PocketPreview(msgspec.Struct, kw_only=True):
    """The effect of the rows that one Pocket pays, as if they were one transfer."""

    pocket_id: UUID
    payments: int
    preview: TransferPreview


class FoundInBatch(msgspec.Struct, kw_only=True):
    """The problems of rows by their numbers, the approval of the list, and the Pockets that pay."""

    problems: dict[int, list[RowProblem]]
    amount: int
    terms: ApprovalRequirement | None
    pockets: list[PocketPreview]


async def preview(bank: Bank, by: Actor, customer: CustomerRow, new: NewBatch) -> FoundInBatch:
    """Preview a batch. Raises Refused `approval-impossible`, InvalidInput at `reviewers`."""
    contents, found = await members.read_contents(bank, by, customer, new)
    problems = {row.number: list(row.problems) for row in new.rows if row.problems}
    problems |= {number: [each] for number, each in found.items()}
    terms: ApprovalRequirement | None = None
    async with bank.pool.acquire() as conn, conn.transaction():
        taken = await members.find_taken(conn, by, contents)
        contents = {n: each for n, each in contents.items() if n not in taken}
        required = await members.requirements_of(bank, conn, by, contents)
        kept = [each for each in required.values() if not isinstance(each, BillfoldError)]
        terms = await members.requirement_of_all(conn, by, kept, new.reviewers) if kept else None
    refused = {n: each for n, each in required.items() if isinstance(each, BillfoldError)}
    paid = {n: each for n, each in contents.items() if n not in refused}
    pockets, not_paid = await _run(bank, by.customer_id, paid) if len(paid) <= RUN_MAX else ([], {})
    problems |= {n: [each] for n, each in taken.items()}
    for number, error in (refused | not_paid).items():
        problems.setdefault(number, []).append(members.problem_from(error))
    amount = sum(content.amount for content in contents.values())
    return FoundInBatch(problems=problems, amount=amount, terms=terms, pockets=pockets)


async def preview_of_partner(caller: Caller, bank: Bank, new: NewBatch) -> FoundInBatch:
    """Preview a batch of transfers of a partner, one row after the other."""
    rows, wrong = await partners.read_batch(caller, bank, new)
    problems = {number: [each] for number, each in wrong.items()}
    kept = [row for row in rows if row.row_no not in problems]
    amount = sum(row.amount or 0 for row in kept)
    before, kept = await partners.results_of_made(bank, caller.own_customer_id, new.batch_id, kept)
    problems |= {each.number: [each.problem] for each in before if each.problem is not None}
    pockets: list[PocketPreview] = []
    if 0 < len(kept) <= RUN_MAX:
        made = dict(zip([row.row_no for row in kept], await partners.commands_of(caller, bank, kept), strict=True))
        problems |= {n: [members.problem_from(each)] for n, each in made.items() if isinstance(each, BillfoldError)}
        commands = {n: each for n, each in made.items() if isinstance(each, Command)}
        async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
            runs = dict(zip(commands, await dry_run_in_order(conn, bank, list(commands.values())), strict=True))
            found = {n: _refusal_in(each) for n, each in runs.items()}
            problems |= {n: [members.problem_from(each)] for n, each in found.items() if each is not None}
            paid = [row for row in kept if row.row_no not in problems]
            pockets = await _effects_on_pockets(bank, conn, paid, runs)
    return FoundInBatch(problems=problems, amount=amount, terms=None, pockets=pockets)


def _refusal_in(run: DryRun | BillfoldError) -> BillfoldError | None:
    """Return why a row that was run would not be carried out."""
    if isinstance(run, BillfoldError):
        return run
    return Refused(*rules.problem_of(run.outcome["reason"])) if run.outcome.get("status") == "REJECTED" else None


async def _effects_on_pockets(
    bank: Bank, conn: Connection, paid: Sequence[BatchRow], runs: Mapping[int, DryRun | BillfoldError]
) -> list[PocketPreview]:
    found: dict[UUID, list[PreviewedTransfer]] = {}
    for row in paid:
        run, pocket_id = runs[row.row_no], partners.order_of(row).from_pocket_id
        assert isinstance(run, DryRun)
        assert row.object_id is not None
        stored = await get_pocket(conn, run.book.customer_id, pocket_id)
        shown = preview_of_payment(run, pocket_id, row.object_id, stored=stored, ordered=row.amount or 0)
        found.setdefault(pocket_id, []).append(shown)
    return [
        PocketPreview(pocket_id=key, payments=len(each), preview=render_preview(joined(each), bank, {}))
        for key, each in found.items()
    ]


class WaitingRows(NamedTuple):
    """The effect of the rows that wait, why some would be refused now, and what is known of their payees, by number."""

    pockets: list[PocketPreview]
    refused: dict[int, BillfoldError]
    payees: dict[int, PayeeHistory]


async def preview_waiting(bank: Bank, customer_id: UUID, batch_id: UUID) -> WaitingRows:
    """Preview the rows of a batch that waits for approval. Of long ones only the payees are looked at."""
    rows = await store.list_waiting(bank.pool, customer_id, batch_id, limit=ROWS_MAX)
    contents = {row.row_no: transfer_orders.decode_content(row.content) for row in rows if row.content is not None}
    known = await read_history(bank.pool, customer_id, list(contents.values()))
    pockets, refused = await _run(bank, customer_id, contents) if len(contents) <= RUN_MAX else ([], {})
    payees = {n: known[each.request_id] for n, each in contents.items() if each.request_id in known}
    return WaitingRows(pockets, refused, payees)


async def _run(
    bank: Bank, customer_id: UUID, contents: Mapping[int, RequestContent]
) -> tuple[list[PocketPreview], dict[int, BillfoldError]]:
    """Return the effect of the rows on the Pockets that pay, and the rows that would be refused now."""
    async with (
        bank.pool.acquire() as conn,
        conn.transaction(isolation="repeatable_read", readonly=True),
    ):
        runs = await run_in_order(bank, conn, list(contents.values()), customer_id=customer_id)
        effects = []
        for pocket_id in dict.fromkeys(content.pocket_id for content in contents.values()):
            paid = [
                (content, run)
                for content in contents.values()
                if content.pocket_id == pocket_id and isinstance(run := runs[content.request_id], DryRun)
            ]
            if paid:
                stored = await get_pocket(conn, customer_id, pocket_id)
                whole = joined([preview_of_run(run, content, stored, terms=None) for content, run in paid])
                shown = render_preview(whole, bank, {})
                effects.append(PocketPreview(pocket_id=pocket_id, payments=len(paid), preview=shown))
    refused = {n: run for n, each in contents.items() if isinstance(run := runs[each.request_id], BillfoldError)}
    return effects, refused
