"""Which doors a bank has."""

from tests.reference.documents import DOCUMENTS, operations_of
from tests.support.partner_client import PartnerClient, close_app, new_partner
from tests.support.whole_bank import close_bank, open_bank

from billfold.wiring.server import make_partner_app


async def test_nothing_of_the_sandbox_is_there_in_production(market_dsn):
    bank = await open_bank(market_dsn, environment="production")
    app = make_partner_app(bank)
    caller = PartnerClient(app, await new_partner(bank))
    tried = [(method, path) for _, method, path, _ in operations_of(DOCUMENTS["partner"]) if "/sandbox/" in path]
    assert len(tried) > 10
    for method, path in tried:
        answer = await caller.send(method, path)
        assert answer.status_code in {400, 404}, (method, path, answer.text)
    assert not [each.path for each in app.operations if "/sandbox/" in each.path]
    await caller.close()
    await close_app(app)
    await close_bank(bank)
