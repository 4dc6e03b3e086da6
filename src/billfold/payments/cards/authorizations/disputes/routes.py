"""Disputes of card payments, in both APIs."""

from uuid import UUID

from billfold.accounts.transactions.store import get_transaction_row
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, post, with_scope
from billfold.http.parameters import OrderedQuery, searched_page_of
from billfold.http.schemas import SearchedList
from billfold.ledger.bank import Bank, limit_usage
from billfold.payments.cards.authorizations.disputes import schemas, store
from billfold.payments.cards.authorizations.disputes.commands import (
    AddDisputeDocuments,
    DecideDispute,
    DisputeStatus,
    OpenDispute,
)
from billfold.platform.database.paging import list_as_of

_READ, _WRITE = with_scope("transfers.read", "disputes"), with_scope("transfers.write", "disputes")
_ALL, _ONE = "/api/v1/card-disputes/", "/api/v1/card-disputes/{dispute_id}/"
_REFUSES = ("dispute-not-possible",)


@post(_ALL, SIGNED, _WRITE, tag="cards", refuses=("not-found", "usage-limit-reached", *_REFUSES))
async def create_card_dispute(caller: Call, bank: Bank, data: schemas.CreateDispute) -> schemas.CardDispute:
    """Create card dispute

    Disputes a cleared payment by card, in full or in part, within the days of `BILLFOLD_DISPUTE_DAYS`. After ten
    business days it is credited provisionally; the credit is taken back if the dispute is lost or withdrawn, and repaid
    by a chargeback or a refund.
    """
    owner, pocket_id = await caller.pocket(bank, data.pocket_id)
    row = await get_transaction_row(bank.pool, owner, pocket_id, data.transaction_id)
    purchase = await store.get_purchase(bank.pool, owner, row.entry_no)
    await limit_usage(bank, "disputes", owner)
    dispute_id = caller.new_resource_id(bank.seed)
    await bank.engine.submit(
        OpenDispute(
            **caller.command_fields(owner),
            references=(purchase.record_id, purchase.card_id, *data.document_ids),
            dispute_id=dispute_id,
            record_id=purchase.record_id,
            amount=data.amount_usdc,
            reason=data.reason,
            document_ids=tuple(data.document_ids),
        )
    )
    return schemas.render_dispute(await store.get_dispute(bank.pool, owner, dispute_id))


@get(_ALL, SIGNED, _READ, tag="cards", as_of=True)
async def list_card_disputes(
    caller: Call, bank: Bank, page_query: OrderedQuery, filters: schemas.DisputeFilters
) -> SearchedList[schemas.CardDispute]:
    """List card disputes

    Returns the disputes of a customer, newest first. The Partner API needs `customer_id`.
    """
    owner = await caller.filtered_owner(bank, filters.customer_id)
    values = (owner, filters.card_id, filters.status)
    listed, then = list_as_of(store.DISPUTES, store.DISPUTES_THEN, caller.as_of)
    page = await page_query.read(bank, listed, *values, *then, scope="card-disputes")
    return searched_page_of(page, [schemas.render_dispute(row) for row in page.items])


@get(_ONE, SIGNED, _READ, tag="cards", as_of=True)
async def get_card_dispute(caller: Call, bank: Bank, dispute_id: UUID) -> schemas.CardDispute:
    """Get card dispute"""
    owner, own_id = await caller.owned(bank, "card_dispute", dispute_id)
    return schemas.render_dispute(await store.get_dispute(bank.pool, owner, own_id, as_of=caller.as_of))


@post(f"{_ONE}withdraw/", SIGNED, _WRITE, tag="cards", status=200, refuses=_REFUSES)
async def withdraw_card_dispute(caller: Call, bank: Bank, dispute_id: UUID) -> schemas.CardDispute:
    """Withdraw card dispute

    A provisional credit is taken back at once, even if it has been spent.
    """
    owner, own_id = await caller.owned(bank, "card_dispute", dispute_id)
    await bank.engine.submit(
        DecideDispute(
            **caller.command_fields(owner),
            references=(own_id,),
            dispute_id=own_id,
            status=DisputeStatus.WITHDRAWN,
        )
    )
    return schemas.render_dispute(await store.get_dispute(bank.pool, owner, own_id))


@post(f"{_ONE}documents/", SIGNED, _WRITE, tag="cards", status=200, refuses=_REFUSES)
async def add_card_dispute_documents(
    caller: Call, bank: Bank, dispute_id: UUID, data: schemas.AddDocuments
) -> schemas.CardDispute:
    """Add card dispute documents

    Adds uploaded documents to a dispute that is not decided, 20 in all. Those that it has change nothing.
    """
    owner, own_id = await caller.owned(bank, "card_dispute", dispute_id)
    await bank.engine.submit(
        AddDisputeDocuments(
            **caller.command_fields(owner),
            references=(own_id, *data.document_ids),
            dispute_id=own_id,
            document_ids=tuple(data.document_ids),
        )
    )
    return schemas.render_dispute(await store.get_dispute(bank.pool, owner, own_id))
