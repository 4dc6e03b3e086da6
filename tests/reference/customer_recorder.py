"""Plays one request per operation of the Customer API and keeps what was sent and answered.

`python -m tests.reference.customer_recorder` writes the package's examples anew; the test beside
this file plays them again and compares.
"""

import asyncio
from pathlib import Path
from uuid import UUID

import httpx
from tests.domain.oauth.programs import program
from tests.interfaces.partner_client import PartnerClient, close_app, json_of
from tests.reference.events_recorder import play_events
from tests.reference.recorder import OPERATOR, Recorder, partner_of, write
from tests.whole_bank import SEED

from billfold.domain import oauth
from billfold.interfaces.customer_api import app as customer_api
from billfold.kit import ids
from billfold.kit.clock import wall_now
from billfold.wiring.serving import make_partner_app

EXAMPLES = Path(customer_api.__file__).with_name("examples.json")
USER, MEMBER = (ids.derive(SEED, OPERATOR, 2000 + n) for n in range(2))


class MemberClient:
    """Sends requests with a bearer token, as the recorder wants to send them."""

    def __init__(self, app, token):
        self.token = token
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="https://api.localhost:8443"
        )

    async def send(self, method, path, body, *, key, query=""):
        headers = {
            "authorization": f"Bearer {self.token}",
            "idempotency-key": str(key),
            "content-type": "application/json",
        }
        url = path + (f"?{query}" if query else "")
        content = json_of(body) if method in {"POST", "PATCH"} else b""
        return await self.http.request(method, url, content=content, headers=headers)


class MemberRecorder(Recorder):
    """Does not note files, which no example shows."""

    async def play_file(self, name, path):
        """Send a request whose answer is a file."""
        answer = await self.client.send("GET", path, b"", key=ids.new())
        assert answer.status_code == 200, (name, answer.text)
        self.notes[name] = {}


async def token_of(bank, customer_id):
    """A token of an administrator whose ids repeat."""
    now = wall_now()
    async with bank.pool.acquire() as conn:
        await conn.execute(
            "INSERT INTO person (user_id, email, email_verified_at, first_name, last_name, "
            "phone_number, created_at) VALUES ($1, 'anna@northwind.example', $2, 'Anna', 'Lind', "
            "'+12025550123', $2)",
            USER, now,
        )  # fmt: skip
        await conn.execute(
            "INSERT INTO membership (customer_id, user_id, member_id, role, status, created_at, "
            "changed_at) VALUES ($1, $2, $3, 'ADMIN', 'ACTIVE', $4, $4)",
            customer_id, USER, MEMBER, now,
        )  # fmt: skip
        await program(conn, keys=(), scopes=tuple(oauth.SCOPES), profile="documented")
        return await oauth.issue_access(
            conn, client_id="books", customer_id=customer_id, scopes=tuple(oauth.SCOPES),
            now=now, user_id=USER,
        )  # fmt: skip


async def record(bank):
    """The examples: operationId -> {"request": ..., "response": ...}."""
    partner_app = make_partner_app(bank)
    partner = PartnerClient(partner_app, await partner_of(bank))
    world = Recorder(bank, partner_app, partner)
    v1 = "/api/v1/sandbox"
    customer = (await world.play("-", "POST", f"{v1}/customers/", {"name": "Northwind"}))["id"]
    app = customer_api.create_customer_app(bank)
    client = MemberClient(app, await token_of(bank, UUID(customer)))
    recorder = MemberRecorder(bank, app, client)
    pocket = await _play_changes(recorder, world)
    await _play_reads(recorder, pocket)
    await play_events(recorder)
    recorder.notes.pop("-", None)
    await client.http.aclose()
    await partner.close()
    await close_app(app)
    await close_app(partner_app)
    return recorder.notes


async def _play_changes(r, world):
    """Open, change and fund a Pocket; return its id."""
    pockets, box = "/api/v2/pockets/", "/api/v1/sandbox"
    new = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}
    pocket = (await r.play("create_pocket", "POST", pockets, new))["id"]
    yields = {"real_time_yield": True}
    await world.play("-", "POST", f"{box}/pockets/{pocket}/", yields)
    name = {"pocket_name": "Payroll reserve"}
    await r.play("update_pocket", "PATCH", f"{pockets}{pocket}/", name)
    portals = f"{pockets}{pocket}/portals/"
    portal = (await r.play("create_portal", "POST", portals, {"name": "Payroll"}))["id"]
    await r.play("update_portal", "PATCH", f"{portals}{portal}/", {"name": "Wages"})
    wire = {"portal_id": portal, "amount_usdc": 25_000_000, "sender_name": "Contoso"}
    await world.play("-", "POST", f"{box}/wire/", wire)
    told = f"{portals}{portal}/funding-instructions/"
    await r.play("get_funding_instructions", "GET", told)
    return pocket


async def _play_reads(r, pocket):
    v1, v2 = "/api/v1", "/api/v2"
    for name, path in (
        ("get_agreements", f"{v1}/agreements/"),
        ("get_customer", f"{v1}/customer/"),
        ("get_user", f"{v1}/user/"),
        ("list_memberships", f"{v1}/user/memberships/"),
        ("list_v1_trades", f"{v1}/trades/"),
        ("list_trades", f"{v2}/trades/"),
        ("list_pockets", f"{v2}/pockets/"),
        ("get_pocket", f"{v2}/pockets/{pocket}/"),
        ("get_pocket_earnings", f"{v2}/pockets/{pocket}/earnings/"),
        ("list_earnings", f"{v2}/earnings/"),
        ("list_portals", f"{v2}/pockets/{pocket}/portals/"),
        ("list_customer_portals", f"{v2}/portals/"),
        ("list_trading_strategies", f"{v2}/trading-strategies/"),
    ):
        await r.play(name, "GET", path)
    listed = await r.play("list_transactions", "GET", f"{v2}/transactions/")
    one = listed["items"][0]["id"]
    await r.play("get_transaction", "GET", f"{v2}/transactions/{one}/")
    await r.play_file("get_transactions_csv", f"{v2}/transactions.csv")
    await r.play_file("get_trades_csv", f"{v1}/trades.csv")


if __name__ == "__main__":
    asyncio.run(write(EXAMPLES, record))
