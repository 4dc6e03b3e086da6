"""Files of the rails, in and out: what became of each, and its messages."""

from __future__ import annotations

import asyncio
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.identity.operators.record import recorded
from billfold.web.console.bank import BankPage, InBank
from billfold.web.console.operators.rail_messages import MessagePage, read_page
from billfold.web.page_context import RECENT_AUTHENTICATION, Mistake, PageResponse, path_id, redirect
from billfold.payments.files import retries
from billfold.payments.files import store as files_store
from billfold.payments.files.closing import propose_close
from billfold.payments.files.contents import read_content
from billfold.platform.errors import InvalidInput, Refused

RAILS = ("ACH", "WIRE", "CARD")
STATES = ("CREATED", "TRANSMITTED", "ARRIVED", "PROCESSED", "REFUSED")
DIRECTIONS = {"IN": "In", "OUT": "Out"}
_FILES_MAX = 50
READ_BYTES_MAX = 1_000_000
"""Of a larger file the command line shows the content."""
_FIRST_DIGITS_MAX = 7


@get("/bank/rails")
async def list_files(operator: InBank) -> PageResponse:
    """List the newest files, by the filters of the address."""
    sent, choices = operator.page.query, {"rail": RAILS, "direction": DIRECTIONS, "state": STATES}
    filters = {name: sent[name] for name, known in choices.items() if sent.get(name) in known}
    files = await files_store.list_files(operator.bank.pool, **filters, limit=_FILES_MAX)
    shown = [(each, retries.retry_state_of(each)) for each in files]
    return operator.render(
        "bank_rails",
        files=shown,
        filters=filters,
        rails=[(each, each) for each in RAILS],
        states=[(each, each.capitalize()) for each in STATES],
        directions=list(DIRECTIONS.items()),
        files_max=_FILES_MAX,
    )


@get("/bank/rails/{file_id:str}")
async def show_file(operator: InBank, file_id: str) -> PageResponse:
    """Show a file, its report and its messages."""
    return await _show(operator, path_id(file_id))


@post("/bank/rails/{file_id:str}/retry", opt=RECENT_AUTHENTICATION)
async def retry_file(operator: InBank, file_id: str) -> PageResponse:
    """Let a worker process a file again that failed, without waiting for its next attempt."""
    wanted, details = path_id(file_id), {"user_id": str(operator.page.user.user_id)}
    try:
        async with recorded(operator.bank, operator.by, "files.retry", ("files", wanted), **details):
            await retries.retry_as_operator(operator.bank, wanted, operator.by)
    except Refused as wrong:
        return await _show(operator, wanted, wrong)
    return redirect(f"/bank/rails/{wanted}", done="file-retried")


@post("/bank/rails/{file_id:str}/close", opt=RECENT_AUTHENTICATION)
async def close_file(operator: InBank, file_id: str) -> PageResponse:
    """Propose to close a file that fails: another operator confirms it, and it is never tried again."""
    wanted = path_id(file_id)
    try:
        reason = operator.page.form.get("reason", "")
        await propose_close(operator.bank, wanted, reason=reason, by=operator.by)
    except (InvalidInput, Refused) as wrong:
        return await _show(operator, wanted, wrong)
    return redirect("/bank/freezes", done="freeze-proposed")


async def _show(operator: BankPage, file_id: UUID, wrong: Mistake = "") -> PageResponse:
    file = await files_store.find_file(operator.bank.pool, file_id)
    first = operator.page.query.get("first", "0")
    number = int(first) if first.isascii() and first.isdigit() and len(first) <= _FIRST_DIGITS_MAX else 0
    if file.size_bytes > READ_BYTES_MAX:
        found = MessagePage([], has_more=False, problem="The file is large. Read it with `billfold files show`.")
    else:
        content = await read_content(operator.bank, file_id)
        found = await asyncio.to_thread(read_page, file.rail, file.direction, content, number)
    return operator.render(
        "bank_rail_file",
        wrong=wrong,
        file=file,
        retry=retries.retry_state_of(file),
        report="" if file.report is None else msgspec.json.format(file.report, indent=2),
        found=found,
        first=number,
    )
