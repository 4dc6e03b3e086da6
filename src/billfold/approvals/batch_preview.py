"""Previews the approval of several transfer requests, one after the other, without writing anything.

The commands of their execution run on one copy of the books, as for a single preview.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.pockets import store
from billfold.approvals.execute_transfers import run_in_order
from billfold.approvals.rules import approvals_in
from billfold.approvals.store.approved_requests import load_payment_settings
from billfold.approvals.store.policies import find_refusals
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.store.reviews import reviews_of
from billfold.approvals.transfer_orders import RequestContent, content_of
from billfold.approvals.transfer_preview import PreviewedTransfer, TransferPreview, preview_of_run, render_preview
from billfold.approvals.types import TransferRequest
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import DryRun
from billfold.platform.database.connection import Db
from billfold.platform.errors import BillfoldError

BATCH_MAX = 100
"""The most requests that are approved together."""
_HISTORY = """
WITH p AS MATERIALIZED (
  SELECT request_id, counterparty_id, created_at FROM counterparty
    JOIN unnest($2::uuid[], $3::uuid[]) AS w(request_id, counterparty_id) USING (counterparty_id)
   WHERE customer_id = $1)
SELECT request_id, created_at,
       (SELECT max(q.amount) FROM transfer_request q
         WHERE q.customer_id = $1 AND q.counterparty_id = p.counterparty_id AND q.status = 'APPROVED'
           AND q.reason IS NULL AND q.series_state IS NULL)
  FROM p
"""


class PayeeHistory(NamedTuple):
    """The time a payee was added, and the largest payment to it that was approved before, in cents; None: none was."""

    added_at: datetime
    largest: int | None


class PocketEffect(NamedTuple):
    """The effect of several transfers on the Pocket that pays them: their number, and their preview as if one."""

    payments: int
    preview: TransferPreview


class BatchPreview(NamedTuple):
    """The effect by Pocket, and by request: why it would be refused, whether it pays now, and its payee so far.

    A request that needs further approvals does not pay now, nor does a series.
    """

    pockets: dict[UUID, PocketEffect]
    refused: dict[UUID, BillfoldError]
    pays: frozenset[UUID]
    payees: dict[UUID, PayeeHistory]


async def preview_batch(bank: Bank, customer_id: UUID, request_ids: Sequence[UUID], *, now: datetime) -> BatchPreview:
    """Preview one more approval of each of these requests, in this order."""
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        requests = await TRANSFER_REQUESTS.list_named(conn, customer_id, request_ids, now=now)
        reviews = await reviews_of(conn, customer_id, requests)
        last = [
            each
            for each in requests
            if not each.is_series and approvals_in(reviews[each.request_id]) + 1 >= each.terms.required
        ]
        contents, settings = [content_of(each) for each in last], await load_payment_settings(conn, customer_id)
        runs: dict[UUID, DryRun | BillfoldError] = {}
        if settings.has_policy and contents:
            runs |= await find_refusals(bank, conn, customer_id, contents, approved=False)
            contents = [each for each in contents if each.request_id not in runs]
        runs |= await run_in_order(bank, conn, contents, customer_id=customer_id)
        paid = [(each, run) for each in last if isinstance(run := runs[each.request_id], DryRun)]
        effects = {}
        for pocket_id in dict.fromkeys(request.pocket_id for request, _ in paid):
            stored = await store.get_pocket(conn, customer_id, pocket_id)
            of_pocket = [(request, run) for request, run in paid if request.pocket_id == pocket_id]
            whole = joined([preview_of_run(run, content_of(each), stored, terms=None) for each, run in of_pocket])
            effects[pocket_id] = PocketEffect(len(of_pocket), render_preview(whole, bank, {}))
        return BatchPreview(
            pockets=effects,
            refused={key: each for key, each in runs.items() if not isinstance(each, DryRun)},
            pays=frozenset(request.request_id for request, _ in paid),
            payees=await read_history(conn, customer_id, requests),
        )


def joined(previews: Sequence[PreviewedTransfer]) -> PreviewedTransfer:
    """Return transfers of one Pocket as one; the Pocket is that after the last."""
    return previews[-1]._replace(
        amount=sum(each.amount for each in previews),
        trades=[row for each in previews for row in each.trades],
        transactions=[row for each in previews for row in each.transactions],
    )


async def read_history(
    conn: Db, customer_id: UUID, requests: Sequence[TransferRequest | RequestContent]
) -> dict[UUID, PayeeHistory]:
    """Return what is known of the payees of transfers, by the transfers' ids."""
    named = [each for each in requests if each.counterparty_id is not None]
    ids = ([each.request_id for each in named], [each.counterparty_id for each in named])
    return {key: PayeeHistory(*rest) for key, *rest in await conn.fetch(_HISTORY, customer_id, *ids)}
