"""Typed calls of the Partner API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.earnings.schemas import Earnings, EarningsList
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.portals.schemas import FundingInstructions, Portal
from billfold.accounts.trades.schemas import Trade
from billfold.accounts.transactions.schemas import Transaction
from billfold.client.events import EventCalls
from billfold.client.request_signature import KEY_HEADER
from billfold.http.schemas import OffsetList
from billfold.payments.ach.schemas import AchOrigination
from billfold.payments.on_us.schemas import OnUsTransfer
from billfold.payments.wires.schemas import Wire
from billfold.treasury.schemas import TradingStrategy


class PartnerApi(EventCalls):
    """Calls with an httpx client that signs. Filters are named as in the API."""

    _key_header = KEY_HEADER

    def customers(self) -> Iterator[Customer]:
        """Go through the partner's customers."""
        return self._iterate("/api/v1/customers/", Customer)

    def customer(self, customer_id: UUID) -> Customer:
        """Return one customer."""
        return self._get(f"/api/v1/customers/{customer_id}/", Customer)

    def strategies(self) -> OffsetList[TradingStrategy]:
        """Return the strategies a Pocket can follow."""
        return self._get("/api/v2/trading-strategies/", OffsetList[TradingStrategy])

    def pockets(self, customer_id: UUID | None = None) -> Iterator[Pocket]:
        """Go through the Pockets of a customer, or of all."""
        customer_path = f"/api/v2/customers/{customer_id}/pockets/"
        return self._iterate("/api/v2/pockets/" if customer_id is None else customer_path, Pocket)

    def pocket(self, pocket_id: UUID) -> Pocket:
        """Return one Pocket."""
        return self._get(f"/api/v2/pockets/{pocket_id}/", Pocket)

    def open_pocket(self, customer_id: UUID, name: str, strategy_id: str, *, key: str | None = None) -> Pocket:
        """Open a Pocket that follows one strategy, like `UST-4W`."""
        body = {"pocket_name": name, "deposit_strategy_id": strategy_id}
        path = f"/api/v2/customers/{customer_id}/pockets/"
        return self._change("POST", path, body, kind=Pocket, key=key)

    def portals(self, pocket_id: UUID) -> Iterator[Portal]:
        """Go through the portals of a Pocket."""
        return self._iterate(f"/api/v2/pockets/{pocket_id}/portals/", Portal)

    def funding_instructions(self, pocket_id: UUID, portal_id: UUID) -> FundingInstructions:
        """Return how to pay into a portal."""
        path = f"/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions/"
        return self._get(path, FundingInstructions)

    def counterparties(self, customer_id: UUID) -> Iterator[Counterparty]:
        """Go through the counterparties of a customer."""
        return self._iterate(f"/api/v2/customers/{customer_id}/counterparties/", Counterparty)

    def add_counterparty(self, customer_id: UUID, *, key: str | None = None, **fields: Any) -> Counterparty:
        """Add an account as payee of a customer; fields as in the API."""
        path = f"/api/v2/customers/{customer_id}/counterparties/"
        return self._change("POST", path, fields, kind=Counterparty, key=key)

    def change_counterparty(
        self, customer_id: UUID, counterparty_id: UUID, *, key: str | None = None, **fields: Any
    ) -> Counterparty:
        """Give a counterparty another `display_name`, or unlink it: `status="UNLINKED"`."""
        path = f"/api/v2/customers/{customer_id}/counterparties/{counterparty_id}/"
        return self._change("PATCH", path, fields, kind=Counterparty, key=key)

    def transfer(self, *, key: str | None = None, **fields: Any) -> OnUsTransfer:
        """Move money between Pockets; fields as in the API."""
        path = "/api/v1/transfers/on-us/"
        return self._change("POST", path, fields, kind=OnUsTransfer, key=key)

    def send_wire(self, pocket_id: UUID, *, key: str | None = None, **fields: Any) -> Wire:
        """Send a wire from a Pocket; fields as in the API."""
        path = f"/api/v1/service-accounts/{pocket_id}/wires/"
        return self._change("POST", path, fields, kind=Wire, key=key)

    def wires(self, **filters: Any) -> Iterator[Wire]:
        """Go through the wires of all customers, newest first."""
        return self._iterate("/api/v1/wires/", Wire, filters)

    def wire(self, wire_id: UUID) -> Wire:
        """Return one wire."""
        return self._get(f"/api/v1/wires/{wire_id}/", Wire)

    def originate_ach(self, pocket_id: UUID, *, key: str | None = None, **fields: Any) -> AchOrigination:
        """Pay a counterparty by ACH, or collect from it; fields as in the API."""
        path = f"/api/v1/service-accounts/{pocket_id}/ach-originating/"
        return self._change("POST", path, fields, kind=AchOrigination, key=key)

    def ach_origination(self, pocket_id: UUID, ach_id: UUID) -> AchOrigination:
        """Return one ACH origination."""
        path = f"/api/v1/service-accounts/{pocket_id}/ach-originating/{ach_id}/"
        return self._get(path, AchOrigination)

    def ach_originations(self, customer_id: UUID, **filters: Any) -> Iterator[AchOrigination]:
        """Go through the ACH originations of a customer."""
        path = f"/api/v1/customers/{customer_id}/ach-originating/"
        return self._iterate(path, AchOrigination, filters)

    def pocket_earnings(self, pocket_id: UUID, **period: str) -> Earnings:
        """Return what a Pocket earned: `period="mtd"`."""
        return self._get(f"/api/v2/pockets/{pocket_id}/earnings/", Earnings, period)

    def earnings(self, **period: str) -> EarningsList:
        """Return what up to 30 Pockets earned, and the sum."""
        return self._get("/api/v2/earnings/", EarningsList, period)

    def transactions(self, **filters: Any) -> Iterator[Transaction]:
        """Go through the transactions of all customers."""
        return self._iterate("/api/v2/transactions/", Transaction, filters)  # type: ignore[arg-type]

    def trades(self, pocket_id: UUID) -> Iterator[Trade]:
        """Go through the trades of a Pocket."""
        return self._iterate(f"/api/v2/pockets/{pocket_id}/trades/", Trade)  # type: ignore[arg-type]

    def simulate(self, operation: str, **fields: Any) -> None:
        """Let something happen in a sandbox: `simulate("wire", portal_id=..., ...)`."""
        self._change("POST", f"/api/v1/sandbox/{operation}/", fields, kind=object)

    def bank_time(self) -> datetime:
        """Return what the clock of a sandbox shows."""
        return datetime.fromisoformat(self._get("/api/v1/sandbox/clock/", dict[str, Any])["now"])
