"""Which doors a bank has."""

from tests.journeys import cases
from tests.support.partner_client import PartnerClient, close_app, new_partner
from tests.support.whole_bank import close_bank, open_bank

from billfold.wiring.server import make_partner_app


async def test_nothing_of_the_sandbox_is_there_in_production(market_dsn):
    bank = await open_bank(market_dsn, environment="production")
    app = make_partner_app(bank)
    caller = PartnerClient(app, await new_partner(bank))
    tried = [(method, path) for method, path in cases.PARTNER if "/sandbox/" in path]
    assert len(tried) > 10
    for method, path in tried:
        answer = await caller.send(method, cases.as_published(path))
        assert answer.status_code in {400, 404}, (method, path, answer.text)
    assert not [path for _, path in cases.routes_of(app) if "/sandbox/" in path]
    await caller.close()
    await close_app(app)
    await close_bank(bank)
