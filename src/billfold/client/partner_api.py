"""Typed calls of the Partner API."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.schemas import Customer
from billfold.accounts.pockets.schemas import Pocket
from billfold.accounts.portals.schemas import Portal
from billfold.accounts.trades.schemas import Trade
from billfold.client.both_apis import BankApi
from billfold.client.request_signature import KEY_HEADER
from billfold.client.responses import changes, gets, lists
from billfold.payments.ach.schemas import AchOrigination
from billfold.payments.cards.schemas import Card, CardDetail, CardOrder, CardStatusResponse, PinResponse, PublicKeys
from billfold.payments.on_us.schemas import OnUsTransfer
from billfold.payments.wires.schemas import Wire

_COUNTERPARTIES = "/api/v2/customers/{}/counterparties/"
_ACCOUNT = "/api/v1/service-accounts/{}"
_ORIGINATIONS = f"{_ACCOUNT}/ach-originating/"


class PartnerApi(BankApi):
    """Calls with an httpx client that signs: of a customer, a Pocket, or all of the partner's customers."""

    _key_header = KEY_HEADER

    customers = lists("/api/v1/customers/", Customer)
    customer = gets("/api/v1/customers/{}/", Customer)
    portals = lists("/api/v2/pockets/{}/portals/", Portal)
    trades = lists("/api/v2/pockets/{}/trades/", Trade)
    counterparties = lists(_COUNTERPARTIES, Counterparty)
    add_counterparty = changes("POST", _COUNTERPARTIES, Counterparty)
    change_counterparty = changes("PATCH", f"{_COUNTERPARTIES}{{}}/", Counterparty)
    """Another `display_name`, or `status="UNLINKED"`."""
    transfer = changes("POST", "/api/v1/transfers/on-us/", OnUsTransfer)
    send_wire = changes("POST", f"{_ACCOUNT}/wires/", Wire)
    originate_ach = changes("POST", _ORIGINATIONS, AchOrigination)
    ach_origination = gets(f"{_ORIGINATIONS}{{}}/", AchOrigination)
    ach_originations = lists("/api/v1/customers/{}/ach-originating/", AchOrigination)

    cards = lists(f"{_ACCOUNT}/cards/", Card)
    create_virtual_card = changes("POST", f"{_ACCOUNT}/virtual-cards/", CardDetail)
    """With its own `public_key`, with which its number is encrypted."""
    order_card = changes("POST", f"{_ACCOUNT}/card-orders/", CardOrder)
    card_order = gets(f"{_ACCOUNT}/card-orders/{{}}/", CardOrder)
    public_keys = gets("/api/v1/public-keys/", PublicKeys)
    set_card_pin = changes("POST", f"{_ACCOUNT}/cards/{{}}/pin/", PinResponse)
    set_card_status = changes("PATCH", f"{_ACCOUNT}/cards/{{}}/status/", CardStatusResponse)

    def pockets(self, customer_id: UUID | None = None) -> Iterator[Pocket]:
        """Iterate over the Pockets of a customer, or of all."""
        customer_path = f"/api/v2/customers/{customer_id}/pockets/"
        return self._iterate("/api/v2/pockets/" if customer_id is None else customer_path, Pocket)

    def open_pocket(self, customer_id: UUID, name: str, strategy_id: str, *, key: str | None = None) -> Pocket:
        """Open a Pocket that follows one strategy, like `UST-4W`."""
        body = {"pocket_name": name, "deposit_strategy_id": strategy_id}
        path = f"/api/v2/customers/{customer_id}/pockets/"
        return self._change("POST", path, body, kind=Pocket, key=key)

    def simulate(self, operation: str, **fields: Any) -> None:
        """Trigger a simulation in a sandbox: `simulate("wire", portal_id=..., ...)`."""
        self._change("POST", f"/api/v1/sandbox/{operation}/", fields, kind=object)

    def bank_time(self) -> datetime:
        """Return the time of a sandbox's clock."""
        return datetime.fromisoformat(self._get("/api/v1/sandbox/clock/", dict[str, Any])["now"])
