"""A whole bank behind its HTTP door, a partner who calls it, and a foreigner."""

import uuid

import pytest
from tests.support.apps import lend_partner_app, take_back
from tests.support.partner_client import PartnerClient, new_partner

from billfold.payments.clearing.store import balances
from billfold.payments.settlement.worker import close_bank_days
from billfold.verify.runner import verify_bank

FOREIGN = uuid.UUID("11111111-1111-4111-8111-111111111111")


class Town:
    """What the stories are told with: requests in, answers checked for their status."""

    def __init__(self, bank, app, client, foreigner):
        self.bank, self.app, self.client, self.foreigner = bank, app, client, foreigner
        self.called = set()

    async def ask(self, method, path, body=None, *, status=200, query="", key=None, by=None):
        """Send a request and return its JSON; anything but `status` is a failure."""
        client = by or self.client
        sent = b"{}" if body is None else body
        answer = await client.send(method, path, sent, query=query, key=key)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def get(self, path, **options):
        return await self.ask("GET", path, **options)

    async def post(self, path, body=None, *, status=201, **options):
        return await self.ask("POST", path, body, status=status, **options)

    async def patch(self, path, body, **options):
        return await self.ask("PATCH", path, body, **options)

    async def customer(self, name="Northwind", *, by=None):
        made = await self.post("/api/v1/sandbox/customers/", {"name": name}, by=by)
        return made["id"]

    async def pocket(self, customer_id, strategy="UST-4W", name="Reserve", *, by=None):
        path = f"/api/v2/customers/{customer_id}/pockets/"
        body = {"pocket_name": name, "deposit_strategy_id": strategy}
        return (await self.post(path, body, by=by))["id"]

    async def fund(self, pocket_id, cents, count=1):
        body = {"account_id": pocket_id, "amount_usdc": cents, "count": count}
        await self.post("/api/v1/sandbox/fund/", body, status=202)

    async def wire(self, pocket_id, cents):
        portals = await self.get(f"/api/v2/pockets/{pocket_id}/portals/")
        body = {"portal_id": portals["items"][0]["id"], "amount_usdc": cents, "sender_name": "Acme"}
        await self.post("/api/v1/sandbox/wire/", body, status=202)

    async def advance(self, **how):
        return await self.post("/api/v1/sandbox/clock/advance/", how, status=200)

    async def value(self, pocket_id):
        pocket = await self.get(f"/api/v2/pockets/{pocket_id}/")
        return pocket["portfolio"]["total_value"]["value"]

    async def legs(self):
        return await self.bank.pool.fetchval("SELECT count(*) FROM posting")

    async def expect_settled(self):
        """Some days later every rail is at zero, nothing is held, and the ledger proves itself."""
        await self.advance(business_days=3)
        await self.prove()
        left = {name: cents for name, cents in (await balances(self.bank.pool)).items() if cents}
        assert not left, left

    async def prove(self):
        """Every story ends with a ledger that proves itself."""
        await close_bank_days(self.bank, await self.bank.now())
        async with self.bank.pool.acquire() as conn:
            report = await verify_bank(conn, market=self.bank.market, vault=self.bank.vault)
        assert not report.findings, report.findings[:5]


@pytest.fixture
async def town(bank):
    """A bank with two partners; the stories are the first one's."""
    app = lend_partner_app(bank)
    first = await new_partner(bank, "acme", features=("customer_closure",))
    second = await new_partner(bank, "zenith")
    client, foreigner = PartnerClient(app, first), PartnerClient(app, second)
    yield Town(bank, app, client, foreigner=foreigner)
    await client.close()
    await foreigner.close()
    await take_back(app)
