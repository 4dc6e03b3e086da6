"""Settlement with the custodian: what is due, fails with their age and cost, and confirmations that differ."""

from litestar import get, post

from billfold.platform.errors import InvalidInput, NotFound
from billfold.trading.settlement import decisions, store
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again


@get("/bank/settlement")
async def show_settlement(operator: InBank) -> PageResponse:
    """Show the settlement."""
    fail_bps = operator.bank.settings.settlement_fail_bps
    return operator.render("bank_settlement", found=await decisions.read_settlement(operator.bank), fail_bps=fail_bps)


async def _show_instruction(operator: BankPage, instruction_id: str, wrong: FormError = "") -> PageResponse:
    bank, bank_id = operator.bank, operator.bank.own_id
    row = await store.get_instruction(bank.pool, bank_id, path_id(instruction_id))
    held = [each for each in await store.list_held(bank.pool, bank_id) if each.instruction_id == row.instruction_id]
    given = operator.page.form if wrong else {}
    return operator.render("bank_settlement_instruction", wrong=wrong, row=row, held=held, given=given)


@get("/bank/settlement/{instruction_id:str}")
async def show_instruction(operator: InBank, instruction_id: str) -> PageResponse:
    """Show an instruction, and what a person can do about it."""
    return await _show_instruction(operator, instruction_id)


@post("/bank/settlement/{instruction_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show_instruction, NotFound)
async def work_instruction(operator: InBank, instruction_id: str) -> PageResponse:
    """Send a rejected instruction again, or propose to book or dismiss a confirmation that differs."""
    form, bank, wanted = operator.page.form, operator.bank, path_id(instruction_id)
    verb, reason = form.get("decision", ""), form.get("reason", "")
    if verb == "send":
        await decisions.send_again(bank, wanted, reason=reason, by=operator.by)
        return redirect(f"/bank/settlement/{wanted}", done="saved")
    if verb not in {"accept", "dismiss"}:
        raise InvalidInput.at("decision", msg="must be chosen")
    difference_id = path_id(form.get("difference", ""))
    await decisions.propose_difference(bank, difference_id, accept=verb == "accept", reason=reason, by=operator.by)
    return redirect("/bank/freezes", done="freeze-proposed")
