"""Applications that are built once per process and lent to one test after the other.

Building one costs as much as a whole journey through it; a bank moves in and out in no time.
"""

from collections import defaultdict

from litestar import Litestar

from billfold.domain.oauth import signing
from billfold.interfaces.auth import app as auth
from billfold.interfaces.customer_api import app as customer_api
from billfold.interfaces.partner_api import app as partner_api
from billfold.kit.clock import wall_now
from billfold.wiring.serving import build_sandbox_app, move_into_sandbox

_free: dict[type, list[Litestar]] = defaultdict(list)
_keys: list[tuple[object, ...]] = []


def lend_partner_app(bank):
    """Return the Partner API of a sandbox with this bank behind it, for this test alone."""
    free = _free[partner_api.Tenant]
    app = free.pop() if free else build_sandbox_app()
    move_into_sandbox(app, bank)
    return app


def lend_customer_app(bank):
    """Return the Customer API with this bank behind it, for this test alone."""
    free = _free[customer_api.Tenant]
    app = free.pop() if free else customer_api.build_customer_app()
    customer_api.move_in(app, bank)
    return app


async def lend_auth_app(bank):
    """Return the authorization server with this bank behind it, for this test alone.

    All tests of a process sign ID tokens with the same keys: to make a pair takes a second.
    """
    if _keys:
        await bank.pool.copy_records_to_table("signing_key", records=_keys)
    else:
        async with bank.pool.acquire() as conn:
            await signing.ensure_signing_keys(conn, bank.vault, wall_now())
            _keys.extend(await conn.fetch("SELECT * FROM signing_key"))
    free = _free[auth.Tenant]
    app = free.pop() if free else auth.build_auth_app()
    auth.move_in(app, bank)
    return app


async def take_back(app):
    """Let the bank move out; the next test may have the application."""
    await app.state.tenant.move_out()
    _free[type(app.state.tenant)].append(app)
