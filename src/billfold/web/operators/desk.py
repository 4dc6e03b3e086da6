"""The trading desk: exposure with what covers it, orders, quotes, executions, the result, and the work by hand."""

from litestar import get, post

from billfold.platform.errors import InvalidInput, NotFound
from billfold.trading import decisions, store
from billfold.trading.blotter import OpenOrders, number_of, read_blotter, read_execution
from billfold.trading.fix.store import list_of_order, list_open, list_sessions
from billfold.trading.overview import read_overview
from billfold.trading.rules.policy import rank_quotes
from billfold.trading.types import LIVE, OrderStatus
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)

_EXECUTIONS_MAX, _ENDED_MAX, _MESSAGES_MAX = 50, 20, 50
_CENTS_OF_A_UNIT, _MICROS = 100_00, 1_000_000
_REPORTS = tuple(
    map(
        str,
        (OrderStatus.CANCELLED, OrderStatus.WORKING, OrderStatus.REJECTED, OrderStatus.EXPIRED, OrderStatus.UNKNOWN),
    )
)
_PROPOSED = "/bank/freezes"


async def _show_desk(operator: BankPage, wrong: FormError = "", **more: object) -> PageResponse:
    bank, bank_id = operator.bank, operator.bank.own_id
    return operator.render(
        "bank_desk",
        wrong=wrong,
        overview=await read_overview(bank),
        dealers=bank.settings.dealers,
        ended=await store.list_ended_orders(bank.pool, bank_id, _ENDED_MAX),
        executions=await store.list_executions(bank.pool, bank_id, _EXECUTIONS_MAX),
        sessions=await list_sessions(bank.pool),
        messages=await list_open(bank.pool, _MESSAGES_MAX),
        given=operator.page.form if wrong else {},
        **{"refused": [], **more},
    )


@get("/bank/desk")
async def show_desk(operator: InBank) -> PageResponse:
    """Show the desk."""
    return await _show_desk(operator)


@post("/bank/desk", opt=RECENT_AUTHENTICATION)
@shown_again(_show_desk)
async def work_desk(operator: InBank) -> PageResponse:
    """Pause or resume the desk, place orders now for everything that is not covered, or close a message."""
    form, bank = operator.page.form, operator.bank
    verb = form.get("decision", "")
    if verb == "cover":
        await decisions.cover_now(bank, cusip=form.get("cusip") or None, by=operator.by)
    elif verb in {"pause", "resume"}:
        await decisions.pause(bank, paused=verb == "pause", reason=form.get("reason", ""), by=operator.by)
    elif verb == "close-message":
        wanted = path_id(form.get("message", ""))
        await decisions.close_message(bank, wanted, reason=form.get("reason", ""), by=operator.by)
    else:
        raise InvalidInput.at("decision", msg="must be chosen")
    return redirect("/bank/desk", done="saved")


@post("/bank/desk/blotter", opt=RECENT_AUTHENTICATION)
@shown_again(_show_desk)
async def import_blotter(operator: InBank) -> PageResponse:
    """Propose the executions of a blotter; lines that do not fit are shown with their reasons."""
    bank, bank_id = operator.bank, operator.bank.own_id
    orders = OpenOrders(await store.list_live_orders(bank.pool, bank_id))
    lines = read_blotter(operator.page.form.get("blotter", ""), bank.calendars, orders)
    read = [each.execution for each in lines if each.execution]
    made = await decisions.propose_executions(bank, read, source="Blotter in the console", by=operator.by)
    refused = [(f"Line {each.line_no}", each.problem) for each in lines if each.execution is None]
    refused += [(f"{each.execution.dealer} {each.execution.reference}", each.reason) for each in made.refused]
    if not refused:
        return redirect(_PROPOSED, done="freeze-proposed")
    return await _show_desk(operator, refused=refused, proposal=made.proposal)


async def _show_order(operator: BankPage, order_id: str, wrong: FormError = "") -> PageResponse:
    bank, bank_id = operator.bank, operator.bank.own_id
    order = await store.get_order(bank.pool, bank_id, path_id(order_id))
    quotes = (await store.list_quotes(bank.pool, bank_id, [order.order_id]))[order.order_id]
    now = await bank.now()
    return operator.render(
        "bank_desk_order",
        wrong=wrong,
        order=order,
        is_live=order.status in LIVE,
        messages=await list_of_order(bank.pool, order.order_id, _MESSAGES_MAX),
        quotes=rank_quotes(quotes, order.side, order.open_units, limit_micros=order.limit_micros, at=now),
        dealers=bank.settings.dealers,
        reports=_REPORTS,
        given=operator.page.form if wrong else {},
    )


@get("/bank/desk/orders/{order_id:str}")
async def show_order(operator: InBank, order_id: str) -> PageResponse:
    """Show an order, its quotes side by side, and the forms to work it."""
    return await _show_order(operator, order_id)


@post("/bank/desk/orders/{order_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show_order, NotFound)
async def work_order(operator: InBank, order_id: str) -> PageResponse:
    """Report the state of an order, keep a quote, or propose an execution."""
    form, bank, wanted = operator.page.form, operator.bank, path_id(order_id)
    verb = form.get("decision", "")
    if verb in _REPORTS:
        reason = form.get("reason", "")
        await decisions.change_order(bank, wanted, OrderStatus(verb), reason=reason, by=operator.by)
    elif verb == "quote":
        price, units = _numbers(form, {"price": _MICROS, "face": 100})
        quoted = {"price_micros": price, "units": units // _CENTS_OF_A_UNIT}
        await decisions.record_quote(bank, wanted, dealer=form.get("dealer", ""), **quoted, by=operator.by)
    elif verb == "execution":
        new = read_execution({**form, "order": str(wanted)}, bank.calendars, OpenOrders(()))
        made = await decisions.propose_executions(bank, [new], source="Entered in the console", by=operator.by)
        if made.proposal is None:
            raise InvalidInput.at("reference", msg=made.refused[0].reason)
        return redirect(_PROPOSED, done="freeze-proposed")
    else:
        raise InvalidInput.at("decision", msg="must be chosen")
    return redirect(f"/bank/desk/orders/{wanted}", done="saved")


async def _show_execution(operator: BankPage, execution_id: str, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    row = await store.get_execution(bank.pool, bank.own_id, path_id(execution_id))
    given = operator.page.form if wrong else {}
    return operator.render("bank_desk_execution", wrong=wrong, row=row, given=given)


@get("/bank/desk/executions/{execution_id:str}")
async def show_execution(operator: InBank, execution_id: str) -> PageResponse:
    """Show an execution, and the forms of its correction and bust."""
    return await _show_execution(operator, execution_id)


@post("/bank/desk/executions/{execution_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show_execution, NotFound)
async def amend_execution(operator: InBank, execution_id: str) -> PageResponse:
    """Propose a dealer's correction or bust."""
    form, bank, wanted = operator.page.form, operator.bank, path_id(execution_id)
    values = None
    if form.get("decision") == "correct":
        old = await store.get_execution(bank.pool, bank.own_id, wanted)
        cents, price, money = _numbers(form, {"face": 100, "price": _MICROS, "money": 100})
        values = decisions.Amendment(cents // _CENTS_OF_A_UNIT, price, money, old.settles_on)
    elif form.get("decision") != "bust":
        raise InvalidInput.at("decision", msg="must be chosen")
    named = {"reference": form.get("reference", ""), "reason": form.get("reason", "")}
    await decisions.propose_amendment(bank, wanted, values=values, by=operator.by, **named)
    return redirect(_PROPOSED, done="freeze-proposed")


def _numbers(form: dict[str, str], scales: dict[str, int]) -> list[int]:
    """Return positive numbers of a form, scaled; a face value is whole bills. Raises InvalidInput."""
    found = []
    for name, scale in scales.items():
        number = number_of(form.get(name, ""), scale)
        if not number or (name == "face" and number % _CENTS_OF_A_UNIT):
            raise InvalidInput.at(
                name, msg="must be a multiple of $100" if name == "face" else "must be a positive number"
            )
        found.append(number)
    return found
