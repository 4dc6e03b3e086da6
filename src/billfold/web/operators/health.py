"""The first page of an operator: the bank's health."""

from litestar import get

from billfold.monitoring.health import check_bank, list_claims, read_lags
from billfold.reports.proofs.roots.store import find_root
from billfold.verify.runner import find_last_verification
from billfold.web.console.team import InBank
from billfold.web.page_context import PageResponse


@get("/bank")
async def show_health(operator: InBank) -> PageResponse:
    """Show the doctor's checks of the bank, late and running work, and the last verification."""
    bank = operator.bank
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        checks = await check_bank(conn, bank.settings, bank.market)
        lags = await read_lags(conn, now=operator.clock.now, wall=operator.page.now)
        verified, root = await find_last_verification(conn), await find_root(conn)
        claims = await list_claims(conn, operator.page.now)
    return operator.render(
        "bank_health",
        business_date=bank.calendars.business_date(operator.clock.now),
        checks=checks,
        failing=[each for each in checks if each.next_step],
        lags=lags,
        verified=verified,
        root=root,
        claims=claims,
    )
