"""Explanations of statuses and limits: each is offered, and authorized, like the read of what it explains."""

from uuid import UUID

from billfold.accounts.counterparties.routes import READS as COUNTERPARTIES
from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.explain.schemas import Explained, Explanation
from billfold.accounts.holds.routes import get_hold
from billfold.accounts.holds.store import get_hold as get_hold_row
from billfold.accounts.pockets.routes import READS as POCKETS
from billfold.accounts.pockets.store import get_pocket as get_pocket_row
from billfold.accounts.trades.routes import get_trade
from billfold.accounts.trades.store import get_trade_row
from billfold.accounts.transactions.routes import READS as TRANSACTIONS
from billfold.accounts.transactions.routes import get_transaction
from billfold.accounts.transactions.store import get_transaction_row
from billfold.approvals.limits_routes import get_limits
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.transfer_requests_routes import get_transfer_request
from billfold.explanations import limits, payments, resources
from billfold.explanations.actions import explain_actions
from billfold.explanations.requests import explain_refused_request
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, MaybeInPath, get, with_scope
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AnyCaller, CustomerCaller
from billfold.onboarding.applications.routes import READS as APPLICATIONS
from billfold.onboarding.applications.routes import get_business_application, get_individual_application
from billfold.payments.ach.routes import get_ach_origination
from billfold.payments.ach.store import get_origination
from billfold.payments.cards.routes import find_card
from billfold.payments.on_us.routes import get_on_us_transfer
from billfold.payments.on_us.store import get_transfer
from billfold.payments.wires.routes import get_wire
from billfold.payments.wires.store import get_wire as get_wire_row
from billfold.request_log.routes import get_logged_request, request_tenant
from billfold.request_log.store import get_request

_TAG = "explain"
_POCKETS = "pockets.read"
"""What shows the figures of a Pocket; the scopes of payments alone do not."""


def _explained(caller: Call, explanation: Explanation, field: str = "status") -> Explained:
    return Explained(field=field, as_of=caller.now, explanation=explanation)


async def _with_actions(caller: Call, bank: Bank, explanation: Explanation, *about: UUID) -> Explained:
    """Return an explanation with who did what to the thing `about`, a customer's id and its own.

    As of an instant there is none: that is of the bank's clock, and the audit log has the clock on the wall.
    """
    if caller.as_of is None and (found := await explain_actions(caller, bank, *about)) is not None:
        explanation.parts.append(found)
    return _explained(caller, explanation)


@get("/api/v2/pockets/{pocket_id}/transactions/{transaction_id}/explain/", tag=_TAG, as_of=True)
@get("/api/v2/transactions/{transaction_id}/explain/", TRANSACTIONS, tag=_TAG, as_of=True)
async def explain_transaction(caller: Call, bank: Bank, pocket_id: MaybeInPath, transaction_id: UUID) -> Explained:
    """Explain transaction.

    Returns its status, the days that lead to its settlement date, and of a fee its days, rate and rounding.
    """
    shown = await get_transaction.handler(caller, bank, pocket_id, transaction_id)
    row = await get_transaction_row(bank.pool, shown.customer_id, shown.pocket_id, shown.id, caller.as_of)
    fee = await payments.explain_fee(shown, row, bank)
    return _explained(caller, payments.explain_transaction(shown, row, bank, fee))


@get("/api/v2/pockets/{pocket_id}/trades/{trade_id}/explain/", *get_trade.access, tag=_TAG, as_of=True)
async def explain_trade(caller: Call, bank: Bank, pocket_id: UUID, trade_id: UUID) -> Explained:
    """Explain trade.

    Returns its status, and the days that lead to its settlement date.
    """
    shown = await get_trade.handler(caller, bank, pocket_id, trade_id)
    row = await get_trade_row(bank.pool, *await caller.pocket(bank, pocket_id), trade_id)
    return _explained(caller, payments.explain_trade(shown, row, bank))


@get("/api/v1/transfers/on-us/{transfer_id}/explain/", *get_on_us_transfer.access, tag=_TAG, as_of=True)
async def explain_on_us_transfer(caller: Call, bank: Bank, transfer_id: UUID) -> Explained:
    """Explain on-us transfer.

    Returns its status. Of one that was rejected for lack of funds, what was needed and what the Pocket could pay.
    """
    await get_on_us_transfer.handler(caller, bank, transfer_id)
    row = await get_transfer(bank.pool, *await caller.owned(bank, "transfer", transfer_id), caller.as_of)
    explanation = await payments.explain_transfer(row, bank, with_pocket=caller.may(_POCKETS))
    return await _with_actions(caller, bank, explanation, row.customer_id, row.transfer_id)


@get("/api/v1/transfer-requests/{transfer_id}/explain/", *get_transfer_request.access, tag=_TAG)
async def explain_transfer_request(member: CustomerCaller, bank: Bank, transfer_id: UUID) -> Explained:
    """Explain transfer request.

    Returns its status: approvals that it has and that are missing, and why its transfer was refused.
    """
    shown = await get_transfer_request.handler(member, bank, transfer_id)
    row = await TRANSFER_REQUESTS.get(bank.pool, member.customer_id, transfer_id, now=member.now)
    return _explained(member, await payments.explain_request(shown, row, bank, with_pocket=member.may(_POCKETS)))


@get("/api/v1/wires/{wire_id}/explain/", *get_wire.access, tag=_TAG, as_of=True)
async def explain_wire(caller: Call, bank: Bank, wire_id: UUID) -> Explained:
    """Explain wire.

    Returns its status, and the cut-off and days that lead to its settlement date.
    """
    shown = await get_wire.handler(caller, bank, wire_id)
    row = await get_wire_row(bank.pool, shown.customer_id, shown.id, as_of=caller.as_of)
    explanation = await payments.explain_wire(row, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, row.customer_id, row.wire_id)


@get("/api/v1/service-accounts/{account_id}/ach-originating/{transfer_id}/explain/", tag=_TAG, as_of=True)
async def explain_ach_origination(caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID) -> Explained:
    """Explain ACH origination.

    Returns its status, the days that lead to its settlement date, and of a collection those to the end of its hold.
    """
    shown = await get_ach_origination.handler(caller, bank, account_id, transfer_id)
    entry = await get_origination(bank.pool, shown.customer_id, shown.id, caller.as_of)
    explanation = await payments.explain_ach(entry, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, entry.customer_id, entry.ach_id)


@get("/api/v2/customers/{customer_id}/counterparties/{counterparty_id}/explain/", tag=_TAG, as_of=True)
@get("/api/v2/counterparties/{counterparty_id}/explain/", COUNTERPARTIES, tag=_TAG, as_of=True)
async def explain_counterparty(caller: Call, bank: Bank, customer_id: MaybeInPath, counterparty_id: UUID) -> Explained:
    """Explain counterparty.

    Returns its status, and the verification that it waits for.
    """
    shown = await get_counterparty.handler(caller, bank, customer_id, counterparty_id)
    owner = await caller.owner(bank, customer_id)
    explanation = await resources.explain_counterparty(shown, owner, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, owner, shown.id)


@get("/api/v2/pockets/{pocket_id}/status/explain/", SIGNED, POCKETS, tag=_TAG, as_of=True)
async def explain_pocket_status(caller: Call, bank: Bank, pocket_id: UUID) -> Explained:
    """Explain status of a Pocket.

    Returns the statuses that it had, and since when it has the present one.
    """
    row = await get_pocket_row(bank.pool, *await caller.pocket(bank, pocket_id), caller.as_of)
    explanation = await resources.explain_pocket_status(row, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, row.customer_id, row.pocket_id)


@get("/api/v2/pockets/{pocket_id}/holds/{hold_id}/explain/", *get_hold.access, tag=_TAG, as_of=True)
async def explain_hold(caller: Call, bank: Bank, pocket_id: UUID, hold_id: UUID) -> Explained:
    """Explain hold.

    Returns why it is there, what it still keeps, and when it ends.
    """
    row = await get_hold_row(bank.pool, *await caller.pocket(bank, pocket_id), hold_id, caller.as_of)
    explanation = await resources.explain_hold(row, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, row.customer_id, row.hold_id)


@get("/api/v1/service-accounts/{account_id}/cards/{card_id}/explain/", tag=_TAG)
async def explain_card(caller: Caller, bank: Bank, account_id: UUID, card_id: UUID) -> Explained:
    """Explain card.

    Returns its status, and why its latest payments were declined.
    """
    row = await find_card(caller, bank, account_id, card_id=card_id)
    explanation = await resources.explain_card(row, bank, at=caller.now)
    return await _with_actions(caller, bank, explanation, row.customer_id, row.card_id)


@get("/api/v1/business-applications/{application_id}/explain/", tag=_TAG)
@get("/api/v2/business-applications/{application_id}/explain/", APPLICATIONS, tag=_TAG)
async def explain_business_application(caller: Call, bank: Bank, application_id: UUID) -> Explained:
    """Explain business application.

    Returns its status, and what is missing before it can be submitted.
    """
    shown = await get_business_application.handler(caller, bank, application_id)
    return _explained(caller, resources.explain_application(shown))


@get("/api/v1/applications/{application_id}/explain/", *get_individual_application.access, tag=_TAG)
async def explain_individual_application(caller: Caller, bank: Bank, application_id: UUID) -> Explained:
    """Explain individual application.

    Returns its status, and what is missing.
    """
    shown = await get_individual_application.handler(caller, bank, application_id)
    return _explained(caller, resources.explain_application(shown))


@get("/api/v2/request-log/{trace_id}/explain/", *get_logged_request.access, tag=_TAG, refuses=("not-found",))
async def explain_logged_request(caller: AnyCaller, bank: Bank, trace_id: str) -> Explained:
    """Explain refused request.

    Returns why a request of the log was refused, by which rule, and with which figures. Those of a request of another
    member, or of another application, are for those who may read Pockets and transfers.
    """
    shown = await get_logged_request.handler(caller, bank, trace_id)
    row = await get_request(bank.pool, request_tenant(caller), UUID(shown.trace_id))
    return _explained(caller, await explain_refused_request(row, caller, bank))


@get("/api/v1/customers/{customer_id}/limits/explain/", tag=_TAG)
@get("/api/v1/limits/explain/", with_scope("customer.read", "customer"), tag=_TAG)
async def explain_limits(caller: Call, bank: Bank, customer_id: MaybeInPath) -> Explained:
    """Explain limits.

    Returns each limit with its scope, what is used of it by which payments, and when it resets.
    """
    shown = await get_limits.handler(caller, bank, customer_id)
    return _explained(caller, await limits.explain_limits(shown, caller, bank), "limits")
