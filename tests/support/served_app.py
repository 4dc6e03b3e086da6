"""The application that the server of `test_serve` imports in its worker."""

import os
from contextlib import asynccontextmanager

from tests.support.whole_bank import close_bank, open_bank

from billfold.apis.partner_api import create_partner_app
from billfold.http.operations import get
from billfold.http.serve import LazyApp
from billfold.identity.partners.caller import Caller


@get("/api/v2/worker/")
async def show_worker(caller: Caller) -> dict[str, int]:
    """Tell which process answers."""
    return {"pid": os.getpid()}


@asynccontextmanager
async def opened():
    bank = await open_bank(os.environ["DOORS_DSN"])
    try:
        yield create_partner_app(bank, operations=[show_worker])
    finally:
        await close_bank(bank)


def make_app():
    return LazyApp(opened)
