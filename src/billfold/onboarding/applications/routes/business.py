"""Applications of businesses: created, filled in, submitted."""

from typing import Annotated
from uuid import UUID

import msgspec

from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, patch, post, with_scope
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import requests, store
from billfold.onboarding.applications.content import open_applications
from billfold.onboarding.applications.forms import BusinessForm, CreateBusinessApplication
from billfold.onboarding.applications.schemas import BusinessApplication, render_business
from billfold.onboarding.applications.types import ApplicationKind, ApplicationStatus

READS, WRITES = with_scope("onboarding.read", "onboarding"), with_scope("onboarding.write", "onboarding")
V1, V2 = "/api/v1/business-applications/", "/api/v2/business-applications/"
_STATUSES = frozenset(ApplicationStatus)


class ApplicationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which applications; None for all."""

    statuses: Annotated[list[str] | None, texts_among("status", _STATUSES)] = None


@post(V1, SIGNED, tag="applications", refuses=("customer-not-open", "duplicate-id"))
@post(V2, WRITES, tag="applications", refuses=("customer-not-open", "duplicate-id"))
async def create_business_application(caller: Call, bank: Bank, data: CreateBusinessApplication) -> BusinessApplication:
    """Create business application.

    Every field is optional until the application is submitted. The same `id` with the same content is the same
    application.
    """
    made = await requests.create_application(caller, bank, ApplicationKind.BUSINESS, data, application_id=data.id)
    return render_business(made, bank.seed)


@get(V1, SIGNED, tag="applications")
@get(V2, READS, tag="applications")
async def list_business_applications(
    caller: Call, bank: Bank, wanted: ListQuery, query: ApplicationQuery
) -> CursorList[BusinessApplication]:
    """List business applications.

    Newest first.
    """
    owner = requests.owner_of(caller)
    page = await wanted.read(
        bank, store.APPLICATIONS, owner, ApplicationKind.BUSINESS, query.statuses, scope="business-applications"
    )
    opened = await open_applications(bank.pool, bank, page.items)
    return page_of(page, [render_business(each, bank.seed) for each in opened])


@get(f"{V1}{{application_id}}/", SIGNED, tag="applications")
@get(f"{V2}{{application_id}}/", READS, tag="applications")
async def get_business_application(caller: Call, bank: Bank, application_id: UUID) -> BusinessApplication:
    """Get business application."""
    return render_business(await requests.read_application(caller, bank, application_id), bank.seed)


@patch(f"{V1}{{application_id}}/", SIGNED, tag="applications", refuses=("application-not-editable",))
@patch(f"{V2}{{application_id}}/", WRITES, tag="applications", refuses=("application-not-editable",))
async def update_business_application(
    caller: Call, bank: Bank, application_id: UUID, data: BusinessForm
) -> BusinessApplication:
    """Update business application.

    Fields that are named are replaced, and removed by null; of `contact` and `risk_info` each field by itself.
    """
    row = await requests.find_own(caller, bank, application_id)
    return render_business(await requests.update_application(caller, bank, row, data), bank.seed)


@post(
    f"{V1}{{application_id}}/apply/",
    SIGNED,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
@post(
    f"{V2}{{application_id}}/apply/",
    WRITES,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
async def apply_business_application(caller: Call, bank: Bank, application_id: UUID) -> BusinessApplication:
    """Submit business application.

    It is verified and decided; `missing_requirements` must be empty.
    """
    row = await requests.find_own(caller, bank, application_id)
    return render_business(await requests.submit_application(caller, bank, row), bank.seed)


@post(
    f"{V1}{{application_id}}/withdraw/", SIGNED, tag="applications", status=200, refuses=("application-not-editable",)
)
@post(
    f"{V2}{{application_id}}/withdraw/", WRITES, tag="applications", status=200, refuses=("application-not-editable",)
)
async def withdraw_business_application(caller: Call, bank: Bank, application_id: UUID) -> BusinessApplication:
    """Withdraw business application.

    One that is CREATED is CLOSED, for good. Its invites open nothing any longer.
    """
    row = await requests.find_own(caller, bank, application_id)
    return render_business(await requests.withdraw_application(caller, bank, row), bank.seed)
