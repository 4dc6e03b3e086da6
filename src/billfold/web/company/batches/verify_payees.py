"""The accounts that wait for the amounts of two small deposits, confirmed on one page, each by itself."""

from collections.abc import Mapping
from uuid import UUID

from litestar import get, post

from billfold.accounts.counterparties.routes import list_counterparties, verify_micro_deposits
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.web.company.counterparties import SCOPE
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of
from billfold.web.page_context import PageResponse, redirect

_PATH = "/companies/{customer_id:str}/counterparties/verify"
_SHOWN_MAX = 40
"""The most accounts on the page: each has two fields, and a form has few."""


@get(_PATH)
async def show_waiting(company: InCompany) -> PageResponse:
    """Show the accounts that wait for deposits to be confirmed."""
    company.require(SCOPE)
    return await _page(company, {})


@post(_PATH)
async def confirm_deposits(company: InCompany) -> PageResponse:
    """Confirm the deposits of each account of which both amounts are given."""
    company.require(SCOPE)
    form, wrong, confirmed = company.page.form, dict[UUID, str](), 0
    for each in await _list_waiting(company):
        given = [form.get(f"{name}.{each.id}", "").strip() for name in ("first", "second")]
        if not any(given):
            continue
        try:
            body = {"amounts": [cents_of("amounts", text) for text in given]}
            key = f"{company.page.form_key}-{each.id}"
            await company.api.send(verify_micro_deposits, body, key=key, counterparty_id=each.id)
            confirmed += 1
        except InvalidInput as error:
            wrong[each.id] = f"Each amount {error.errors[0].msg}."
        except (NotFound, Refused) as refused:
            wrong[each.id] = refused.detail
    if confirmed and not wrong:
        return redirect(f"{company.path}/counterparties/verify", done="deposits-confirmed")
    return await _page(company, wrong, confirmed)


async def _list_waiting(company: Company) -> list[Counterparty]:
    found = await company.api.get(list_counterparties, type="ach", status="PENDING", limit=100)
    return [each for each in found.items if each.verification.type == "micro_deposits"][:_SHOWN_MAX]


async def _page(company: Company, wrong: Mapping[UUID, str], confirmed: int = 0) -> PageResponse:
    return company.render(
        "verify_payees",
        payees=await _list_waiting(company),
        mistakes=wrong,
        confirmed=confirmed,
        given=company.page.form,
        status=409 if wrong else None,
    )
