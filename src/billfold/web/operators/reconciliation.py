"""Reconciliation: balances with the rails, late settlements, and suspense."""

import msgspec
from litestar import get, post

from billfold.dual_control.store import REASON_CHARS_MAX
from billfold.payments.clearing.report import read_in_transit
from billfold.payments.suspense.decisions import propose_assignment, propose_return, propose_write_off
from billfold.payments.suspense.rules import NOT_RETURNABLE, SuspenseStatus
from billfold.payments.suspense.store import get_item, list_items
from billfold.platform.errors import InvalidInput, NotFound
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)

_PAYMENTS_MAX = 50
_ITEMS_MAX = 100
_TEXT_MAX = 34


async def _show(operator: BankPage, item_id: str, wrong: FormError = "") -> PageResponse:
    item = await get_item(operator.bank.pool, path_id(item_id))
    given = operator.page.form if wrong else {}
    return operator.render(
        "bank_suspense_item",
        wrong=wrong,
        item=item,
        waits=item.status == SuspenseStatus.HELD,
        stays=msgspec.json.decode(item.details).get(NOT_RETURNABLE),
        given=given,
    )


@get("/bank/reconciliation")
async def show_reconciliation(operator: InBank) -> PageResponse:
    """Show breaks by their age, payments in transit, and the items in suspense."""
    transit = await read_in_transit(operator.bank, limit=_PAYMENTS_MAX)
    held = await list_items(operator.bank.pool, status=SuspenseStatus.HELD, limit=_ITEMS_MAX)
    return operator.render(
        "bank_reconciliation", transit=transit, held=held, items_max=_ITEMS_MAX, payments_max=_PAYMENTS_MAX
    )


@get("/bank/suspense/{item_id:str}")
async def show_item(operator: InBank, item_id: str) -> PageResponse:
    """Show an item of suspense, and the actions on it."""
    return await _show(operator, item_id)


@post("/bank/suspense/{item_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound)
async def settle_item(operator: InBank, item_id: str) -> PageResponse:
    """Propose to return an item to its sender, to credit it to its owner, or to write it off."""
    form, item, bank = operator.page.form, path_id(item_id), operator.bank
    given = {name: value.strip() for name, value in form.items() if name != "csrf"}
    verb = given.pop("decision", "")
    _check(verb, given)
    if verb in {"return", "by_hand"}:
        await propose_return(bank, item, reason=given["reason"], by_hand=verb == "by_hand", by=operator.by)
    elif verb == "write_off":
        await propose_write_off(bank, item, reason=given["reason"], by=operator.by)
    else:
        numbers = {name: given[name] for name in ("routing_number", "account_number")}
        await propose_assignment(bank, item, **numbers, by=operator.by)
    return redirect("/bank/freezes", done="freeze-proposed")


def _check(verb: str, given: dict[str, str]) -> None:
    """Raise InvalidInput for a form that lacks a field, or has an excess one."""
    wanted = ("routing_number", "account_number") if verb == "assign" else ("reason",)
    if verb not in {"assign", "return", "by_hand", "write_off"}:
        raise InvalidInput.at("decision", msg="must be chosen")
    longest = REASON_CHARS_MAX if verb in {"by_hand", "write_off"} else _TEXT_MAX
    for name in wanted:
        if not 1 <= len(given.get(name, "")) <= longest:
            raise InvalidInput.at(name, msg=f"must be 1 to {longest} characters")
    for name in given.keys() - set(wanted):
        del given[name]
