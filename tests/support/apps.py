"""Applications that are built once per process and reused by one test after the other.

Building one costs as much as a whole journey through it; opening a bank behind it costs nothing.
"""

from collections import defaultdict
from typing import Any

from billfold.apis.customer_api import CustomerApi
from billfold.apis.partner_api import PartnerApi
from billfold.oauth import signing_keys
from billfold.oauth.server.app import AuthApi
from billfold.platform.clock import wall_now
from billfold.sandbox.routes.operations import build_sandbox_app, open_sandbox
from billfold.web.app import PagesApp, create_pages_app

_free: dict[type, list[Any]] = defaultdict(list)
_behind: dict[PagesApp, tuple[Any, Any]] = {}
_keys: list[tuple[object, ...]] = []


def lend_partner_app(bank):
    """Return the Partner API of a sandbox with this bank behind it, for this test alone."""
    api = _free[PartnerApi].pop() if _free[PartnerApi] else build_sandbox_app()
    open_sandbox(api, bank)
    return api


def lend_customer_app(bank):
    """Return the Customer API with this bank behind it, for this test alone."""
    api = _free[CustomerApi].pop() if _free[CustomerApi] else CustomerApi()
    api.open_bank(bank)
    return api


class ApiBehind:
    """The API behind the pages, whichever is lent at the time."""

    def __init__(self, api):
        self.api = api

    def __getattr__(self, name):
        return getattr(self.api, name)


def lend_pages(bank, customer_app, partner_app, clock=wall_now):
    """Return the pages with this bank and these APIs behind them, for this test alone."""
    if _free[PagesApp]:
        made = _free[PagesApp].pop()
        _behind[made][0].api, _behind[made][1].api = customer_app, partner_app
        made.open_bank(bank, clock)
    else:
        behind: Any = ApiBehind(customer_app), ApiBehind(partner_app)
        made = create_pages_app(bank, *behind, clock=clock)
        _behind[made] = behind
    return made


async def lend_auth_app(bank):
    """Return the authorization server with this bank behind it, for this test alone.

    All tests of a process sign ID tokens with the same keys: to make a pair takes a second.
    """
    if _keys:
        await bank.pool.copy_records_to_table("signing_key", records=_keys)
    else:
        async with bank.pool.acquire() as conn:
            await signing_keys.ensure_signing_keys(conn, bank.vault, wall_now())
            _keys.extend(await conn.fetch("SELECT * FROM signing_key"))
    api = _free[AuthApi].pop() if _free[AuthApi] else AuthApi()
    api.open_bank(bank)
    return api


async def take_back(api):
    """Close the bank behind it; the next test may have the application."""
    await api.close()
    _free[type(api)].append(api)
