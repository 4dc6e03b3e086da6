"""Applications that are built once per process and lent to one test after the other.

Building one costs as much as a whole journey through it; a bank moves in and out in no time.
"""

from collections import defaultdict

from litestar import Litestar

from billfold.interfaces.customer_api import app as customer_api
from billfold.interfaces.partner_api import app as partner_api
from billfold.wiring.serving import build_sandbox_app, move_into_sandbox

_free: dict[type, list[Litestar]] = defaultdict(list)


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


async def take_back(app):
    """Let the bank move out; the next test may have the application."""
    await app.state.tenant.move_out()
    _free[type(app.state.tenant)].append(app)
