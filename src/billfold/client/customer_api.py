"""Typed calls of the Customer API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.earnings.schemas import Earnings, EarningsList
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.portals.schemas import FundingInstructions, Portal
from billfold.accounts.trades.schemas import Trade, V1Trade
from billfold.accounts.transactions.schemas import Transaction
from billfold.audit.schemas import CustomerAuditLogEntry
from billfold.client.approvals import ApprovalApi
from billfold.client.events import EventCalls
from billfold.client.responses import ApiError
from billfold.client.team import TeamApi
from billfold.events.notifications.types import CustomerNotification, NotificationAudience, NotificationAudiences
from billfold.http.schemas import OffsetList
from billfold.payments.wires.schemas import Wire
from billfold.treasury.schemas import TradingStrategy

_AUDIENCES = "/api/v1/notification-audiences/"
_COUNTERPARTIES = "/api/v2/counterparties/"
_POCKETS = "/api/v2/pockets/"


class CustomerApi(TeamApi, ApprovalApi, EventCalls):
    """Calls with an httpx client that authenticates itself. Filters are named as in the API."""

    def customer(self) -> Customer:
        """Return the company."""
        return self._get("/api/v1/customer/", Customer)

    def user(self) -> dict[str, Any]:
        """Return the user."""
        return self._get("/api/v1/user/", dict[str, Any])

    def memberships(self) -> list[dict[str, Any]]:
        """Return whose team the user belongs to."""
        memberships_page = self._get("/api/v1/user/memberships/", dict[str, list[dict[str, Any]] | str])
        items = memberships_page["items"]
        return items if isinstance(items, list) else []

    def agreements(self) -> dict[str, Any]:
        """Return the agreements in force."""
        return self._get("/api/v1/agreements/", dict[str, Any])

    def strategies(self) -> OffsetList[TradingStrategy]:
        """Return the strategies a Pocket can follow."""
        return self._get("/api/v2/trading-strategies/", OffsetList[TradingStrategy])

    def notifications(self, **filters: Any) -> Iterator[CustomerNotification]:
        """Go through what the member was told; `status="UNREAD"`."""
        return self._iterate("/api/v1/notifications/", CustomerNotification, filters)

    def mark_notification(self, notification_id: UUID, status: str) -> CustomerNotification:
        """Mark a notification as READ or UNREAD."""
        path = f"/api/v1/notifications/{notification_id}/"
        return self._change("PATCH", path, {"status": status}, kind=CustomerNotification)

    def audiences(self) -> list[NotificationAudience]:
        """Return who hears of what."""
        return self._get(_AUDIENCES, NotificationAudiences).items

    def audience(self, notification_type: str) -> NotificationAudience:
        """Return who hears of one type."""
        return self._get(f"{_AUDIENCES}{notification_type}/", NotificationAudience)

    def set_audience(
        self, notification_type: str, *, roles: Sequence[str], user_ids: Sequence[UUID] = ()
    ) -> NotificationAudience:
        """Choose who hears of a type; both empty means nobody."""
        body = {"roles": list(roles), "user_ids": [str(each) for each in user_ids]}
        return self._change("PUT", f"{_AUDIENCES}{notification_type}/", body, kind=NotificationAudience)

    def clear_audience(self, notification_type: str) -> None:
        """Go back to the platform's default."""
        self._change("DELETE", f"{_AUDIENCES}{notification_type}/", {}, kind=type(None))

    def audit_log(self, member_id: UUID | None = None, **timestamps: str) -> Iterator[CustomerAuditLogEntry]:
        """Go through what was done, by one member or by all: `timestamp_from`, `timestamp_to`."""
        member_path = "" if member_id is None else f"members/{member_id}/"
        return self._iterate(f"/api/v1/team/{member_path}audit-logs/", CustomerAuditLogEntry, timestamps)

    def audit_log_csv(self) -> str:
        """Return the whole log as CSV."""
        return self._text("/api/v1/team/audit-logs.csv")

    def counterparties(self, **filters: Any) -> Iterator[Counterparty]:
        """Go through the counterparties; `status="VERIFIED"`, `type="ach"`."""
        return self._iterate(_COUNTERPARTIES, Counterparty, filters)

    def add_counterparty(self, *, key: str | None = None, **fields: Any) -> Counterparty:
        """Add an account as payee; fields as in the API."""
        return self._change("POST", _COUNTERPARTIES, fields, kind=Counterparty, key=key)

    def change_counterparty(self, counterparty_id: UUID, *, key: str | None = None, **fields: Any) -> Counterparty:
        """Give a counterparty another `display_name`, or unlink it: `status="UNLINKED"`."""
        return self._change("PATCH", f"{_COUNTERPARTIES}{counterparty_id}/", fields, kind=Counterparty, key=key)

    def confirm_deposits(
        self, counterparty_id: UUID, first: int, second: int, *, key: str | None = None
    ) -> Counterparty:
        """Name the two amounts in cents that arrived at a counterparty's account."""
        path = f"{_COUNTERPARTIES}{counterparty_id}/verify-micro-deposits/"
        return self._change("POST", path, {"amounts": [first, second]}, kind=Counterparty, key=key)

    def pockets(self, *, offset: int = 0, limit: int = 30) -> OffsetList[Pocket]:
        """Return some Pockets, newest first."""
        return self._get(_POCKETS, OffsetList[Pocket], {"offset": offset, "limit": limit})

    def pocket(self, pocket_id: UUID) -> Pocket:
        """Return one Pocket."""
        return self._get(f"{_POCKETS}{pocket_id}/", Pocket)

    def open_pocket(self, name: str, strategy_id: str, *, key: str | None = None) -> Pocket:
        """Open a Pocket that follows one strategy, like `UST-4W`."""
        body = {"pocket_name": name, "trading_strategy_id": strategy_id}
        return self._change("POST", _POCKETS, body, kind=Pocket, key=key)

    def change_pocket(self, pocket_id: UUID, *, key: str | None = None, **changes: Any) -> Pocket:
        """Change a Pocket; fields as in the API."""
        return self._change("PATCH", f"{_POCKETS}{pocket_id}/", changes, kind=Pocket, key=key)

    def portals(self, pocket_id: UUID | None = None) -> Iterator[Portal]:
        """Go through the portals of a Pocket, or of all."""
        path = "/api/v2/portals/" if pocket_id is None else f"{_POCKETS}{pocket_id}/portals/"
        return self._iterate(path, Portal)

    def open_portal(self, pocket_id: UUID, name: str, *, key: str | None = None) -> Portal:
        """Open a portal of a Pocket."""
        path = f"{_POCKETS}{pocket_id}/portals/"
        return self._change("POST", path, {"name": name}, kind=Portal, key=key)

    def change_portal(self, pocket_id: UUID, portal_id: UUID, *, key: str | None = None, **changes: str) -> None:
        """Rename a portal, or close it with `status="CLOSED"`."""
        path = f"{_POCKETS}{pocket_id}/portals/{portal_id}/"
        self._change("PATCH", path, changes, kind=type(None), key=key)

    def funding_instructions(self, pocket_id: UUID, portal_id: UUID) -> FundingInstructions:
        """Return how to pay into a portal."""
        path = f"{_POCKETS}{pocket_id}/portals/{portal_id}/funding-instructions/"
        return self._get(path, FundingInstructions)

    def pocket_earnings(self, pocket_id: UUID, **period: str) -> Earnings:
        """Return what a Pocket earned: `period="mtd"`."""
        return self._get(f"{_POCKETS}{pocket_id}/earnings/", Earnings, period)

    def earnings(self, **period: str) -> EarningsList:
        """Return what all Pockets earned, and the sum."""
        return self._get("/api/v2/earnings/", EarningsList, period)

    def transactions(self, **filters: Any) -> Iterator[Transaction]:
        """Go through transactions."""
        return self._iterate("/api/v2/transactions/", Transaction, filters)  # type: ignore[arg-type]

    def wires(self, **filters: Any) -> Iterator[Wire]:
        """Go through wires, newest first."""
        return self._iterate("/api/v1/wires/", Wire, filters)

    def wire(self, wire_id: UUID) -> Wire:
        """Return one wire."""
        return self._get(f"/api/v1/wires/{wire_id}/", Wire)

    def transactions_csv(self) -> str:
        """Return all transactions as CSV."""
        return self._text("/api/v2/transactions.csv")

    def trades(self, **filters: Any) -> Iterator[Trade]:
        """Go through trades, transfers of bills included."""
        return self._iterate("/api/v2/trades/", Trade, filters)  # type: ignore[arg-type]

    def v1_trades(self, **filters: Any) -> Iterator[V1Trade]:
        """Go through purchases, sales and maturities."""
        return self._iterate("/api/v1/trades/", V1Trade, filters)

    def trades_csv(self) -> str:
        """Return all trades as CSV."""
        return self._text("/api/v1/trades.csv")

    def _text(self, path: str) -> str:
        response = self._http.get(path)
        if response.is_error:
            raise ApiError(response)
        return response.text
