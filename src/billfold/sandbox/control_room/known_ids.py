"""The ids that a form may mean, from the lists of the Partner API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.customers.routes import list_customers
from billfold.accounts.pockets.routes import list_pockets
from billfold.accounts.portals.routes import list_customer_portals
from billfold.http.operations import Operation
from billfold.onboarding.applications.routes.business import list_business_applications
from billfold.payments.ach.routes import list_customer_ach_originations
from billfold.payments.cards.routes.cards import list_customer_cards
from billfold.payments.cards.routes.orders import list_customer_card_orders
from billfold.payments.wires.routes import list_wires
from billfold.web.console.api_client import ApiClient

_CUSTOMERS = 5
_SHOWN = 20
_SAYS = ("name", "pocket_name", "counterparty_name", "direction", "type", "last_four", "status")


class _Source(NamedTuple):
    """Where ids are listed: for all customers at once, or for each."""

    operation: Operation
    id_field: str = "id"
    is_of_customer: bool = False


IDS: Mapping[str, _Source] = MappingProxyType(
    {
        "account_id": _Source(list_pockets),
        "application_id": _Source(list_business_applications),
        "card_id": _Source(list_customer_cards, "card_id", is_of_customer=True),
        "card_order_id": _Source(list_customer_card_orders, "card_order_id", is_of_customer=True),
        "counterparty_id": _Source(list_counterparties, is_of_customer=True),
        "customer_id": _Source(list_customers),
        "pocket_id": _Source(list_pockets),
        "portal_id": _Source(list_customer_portals, is_of_customer=True),
        "transfer_id": _Source(list_customer_ach_originations, is_of_customer=True),
        "wire_id": _Source(list_wires),
    }
)


async def list_known(api: ApiClient, parameter: str, customer_id: UUID | None = None) -> list[tuple[str, str]]:
    """Return the ids that a parameter may have, each with what it stands for: of one customer, or of all."""
    source = IDS[parameter]
    if not source.is_of_customer:
        items = (await api.get(source.operation, limit=_SHOWN)).items
        items = [each for each in items if customer_id in {None, getattr(each, "customer_id", each.id)}]
    else:
        customers = [each.id for each in (await api.get(list_customers, limit=_CUSTOMERS)).items]
        items = [
            item
            for each in (customers if customer_id is None else [customer_id])
            for item in (await api.get(source.operation, customer_id=each, limit=_SHOWN)).items
        ]
    return [(str(getattr(each, source.id_field)), _words(each)) for each in items[:_SHOWN]]


def _words(item: Any) -> str:  # noqa: ANN401 - an item of any list
    said = [getattr(item, name, None) for name in _SAYS]
    amount = getattr(getattr(item, "amount", None), "formatted", None)
    return ", ".join(str(each) for each in [*said, amount] if isinstance(each, str) and each)
