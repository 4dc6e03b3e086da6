"""The bank's clock as a page shows it."""

from datetime import datetime
from typing import NamedTuple

from billfold.platform.database.business_clock import read_clock
from billfold.web.page_context import PageContext


class PageClock(NamedTuple):
    """What time it is in the bank; in a sandbox the clock can be set, and stopped."""

    now: datetime
    is_settable: bool
    is_frozen: bool


async def read_page_clock(page: PageContext) -> PageClock:
    """Return the clock at the moment of a request."""
    bank = page.server.bank
    if not bank.engine.test_clock:
        return PageClock(page.now, is_settable=False, is_frozen=False)
    async with page.pool.acquire() as conn:
        state = await read_clock(conn)
    if state is None:
        return PageClock(page.now, is_settable=True, is_frozen=False)
    return PageClock(state.at(page.now), is_settable=True, is_frozen=state.frozen)
