"""The first page of a partner: what needs its engineers, and its newest customers and applications."""

from datetime import timedelta

from litestar import get

from billfold.accounts.customers.routes import list_customers
from billfold.events.webhooks.routes import list_subscriptions
from billfold.onboarding.applications.routes import list_business_applications
from billfold.request_log.routes import list_request_errors
from billfold.web.console.partner import InPartner
from billfold.web.console.partners.customers import name_of
from billfold.web.page_context import PageResponse

_SHOWN = 5
_SUBSCRIPTIONS = 50
_GROUPED = timedelta(hours=24)


@get("/partners/{slug:str}")
async def show_partner(partner: InPartner) -> PageResponse:
    """Show what is new and what has failed."""
    api, since = partner.api, (partner.page.now - _GROUPED).isoformat()
    customers = (await api.get(list_customers, limit=_SHOWN)).items
    return partner.render(
        "partner_home",
        customers=customers,
        names={str(each.id): name_of(each) for each in customers},
        applications=(await api.get(list_business_applications, limit=_SHOWN)).items,
        errors=(await api.get(list_request_errors, timestamp_from=since, limit=_SHOWN)).items,
        stopped=[
            each for each in (await api.get(list_subscriptions, limit=_SUBSCRIPTIONS)).items if each.status != "enabled"
        ],
    )
