"""Plays one request per operation of the Customer API and keeps what was sent and answered.

`python -m tests.reference.customer_recorder` writes the package's examples anew; the test beside
this file plays them again and compares.
"""

import asyncio
import json
from pathlib import Path
from uuid import UUID

import httpx
from tests.journeys import cases
from tests.reference.approvals_recorder import play_approvals
from tests.reference.events_recorder import play_events
from tests.reference.payees_recorder import ACCOUNT, DEPOSITS, PROOF, play_documents
from tests.reference.recorder import OPERATOR, Recorder, partner_of, write
from tests.support.oauth_clients import program
from tests.support.partner_client import PartnerClient, close_app, json_of
from tests.support.whole_bank import SEED

from billfold.access.oauth import access_tokens, clients
from billfold.access.oauth.rules.scopes import SCOPES
from billfold.http.customer_api import app as customer_api
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.wiring.server import make_partner_app

EXAMPLES = Path(customer_api.__file__).with_name("examples.json")
USER, MEMBER, OTHER_USER, OTHER_MEMBER = (ids.derive(SEED, OPERATOR, 2000 + n) for n in range(4))
AT = "2025-06-02T13:00:00.000000Z"


class MemberClient:
    """Sends requests with a bearer token, as the recorder wants to send them."""

    def __init__(self, app, token):
        self.token = token
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://api.localhost:8443")

    async def send(self, method, path, body, *, key, query="", headers=None):
        sent = {
            "authorization": f"Bearer {self.token}",
            "idempotency-key": str(key),
            "content-type": "application/json",
        }
        url = path + (f"?{query}" if query else "")
        content = json_of(body) if method in {"POST", "PATCH", "PUT"} else b""
        return await self.http.request(method, url, content=content, headers=sent | (headers or {}))


class MemberRecorder(Recorder):
    """Does not note files, which no example shows; names what chance made in its order."""

    def name(self, *drawn):
        """Let ids that chance made be written as ids that repeat."""
        for each in drawn:
            self.stand_ins[each] = ids.derive(SEED, OPERATOR, 3000 + len(self.stand_ins))
            self.stand_ins[UUID(each).hex] = self.stand_ins[each].hex

    @property
    def examples(self):
        """Return the notes with what repeats in the place of what does not."""
        text = json.dumps({name: settled(note) for name, note in self.notes.items()})
        for drawn, kept in self.stand_ins.items():
            text = text.replace(drawn, str(kept))
        return json.loads(text)

    def __init__(self, bank, app, client):
        super().__init__(bank, app, client)
        self.stand_ins = {}

    async def play_file(self, name, path):
        """Send a request whose answer is a file."""
        answer = await self.client.send("GET", path, b"", key=ids.new())
        assert answer.status_code == 200, (name, answer.text)
        self.notes[name] = {}


def settled(told):
    """Return an answer with the instants of keys, which live on the wall clock, as they may be."""
    if isinstance(told, list):
        return [settled(each) for each in told]
    if not isinstance(told, dict):
        return told
    if told.get("object_type") == "ServiceUserKey":
        ends = None if told["expires_at"] is None else "2025-06-03T13:00:00Z"
        return told | {"time_created": "2025-06-02T13:00:00Z", "expires_at": ends}
    return {name: settled(each) for name, each in told.items()}


async def token_of(bank, customer_id, *, user=USER, member=MEMBER, name="Anna"):
    """A token of an administrator whose ids repeat."""
    now = wall_now()
    async with bank.pool.acquire() as conn:
        await conn.execute(
            "INSERT INTO user_account (user_id, email, email_verified_at, first_name, last_name, "
            "phone_number, created_at) VALUES ($1, $3, $2, $4, 'Lind', '+12025550123', $2)",
            user,
            now,
            f"{name.lower()}@northwind.example",
            name,
        )
        await conn.execute(
            "INSERT INTO membership (customer_id, user_id, member_id, role, status, created_at, "
            "changed_at) VALUES ($1, $2, $3, 'ADMIN', 'ACTIVE', $4, $4)",
            customer_id,
            user,
            member,
            await bank.now(),
        )
        if await clients.find_client(conn, "books") is None:
            await program(conn, keys=(), scopes=tuple(SCOPES), profile="documented")
        return await access_tokens.issue_access(
            conn, client_id="books", customer_id=customer_id, scopes=tuple(SCOPES), now=now, user_id=user
        )


async def record(bank):
    """The examples: operationId -> {"request": ..., "response": ...}."""
    partner_app = make_partner_app(bank)
    partner = PartnerClient(partner_app, await partner_of(bank))
    world = Recorder(bank, partner_app, partner)
    v1 = "/api/v1/sandbox"
    customer = (await world.play("-", "POST", f"{v1}/customers/", body={"name": "Northwind"}))["id"]
    app = customer_api.create_customer_app(bank)
    client = MemberClient(app, await token_of(bank, UUID(customer)))
    recorder = MemberRecorder(bank, app, client)
    pocket = await _play_changes(recorder, world)
    await _play_counterparties(recorder)
    await _play_reads(recorder, pocket)
    await play_events(recorder)
    await _play_told(recorder)
    await _play_team(recorder)
    await _play_programs(recorder)
    other = await token_of(bank, UUID(customer), user=OTHER_USER, member=OTHER_MEMBER, name="Cleo")
    await play_approvals(recorder, MemberClient(app, other), pocket)
    recorder.notes.pop("-", None)
    await client.http.aclose()
    await partner.close()
    await close_app(app)
    await close_app(partner_app)
    return recorder.examples


async def _play_changes(r, world):
    """Open, change and fund a Pocket; return its id."""
    pockets, box = "/api/v2/pockets/", "/api/v1/sandbox"
    new = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"}
    pocket = (await r.play("create_pocket", "POST", pockets, body=new))["id"]
    yields = {"real_time_yield": True}
    await world.play("-", "POST", f"{box}/pockets/{pocket}/", body=yields)
    name = {"pocket_name": "Payroll reserve"}
    await r.play("update_pocket", "PATCH", f"{pockets}{pocket}/", body=name)
    portals = f"{pockets}{pocket}/portals/"
    portal = (await r.play("create_portal", "POST", portals, body={"name": "Payroll"}))["id"]
    await r.play("update_portal", "PATCH", f"{portals}{portal}/", body={"name": "Wages"})
    wire = {"portal_id": portal, "amount_usdc": 25_000_000, "sender_name": "Contoso"}
    await world.play("-", "POST", f"{box}/wire/", body=wire)
    told = f"{portals}{portal}/funding-instructions/"
    await r.play("get_funding_instructions", "GET", told)
    return pocket


async def _play_counterparties(r):
    path = "/api/v2/counterparties/"
    one = f"{path}{(await r.play('create_counterparty', 'POST', path, body=ACCOUNT))['id']}/"
    await r.play("verify_micro_deposits", "POST", f"{one}verify-micro-deposits/", body=DEPOSITS)
    await r.play("update_counterparty", "PATCH", one, body={"display_name": "Supplier"})
    await r.play("get_counterparty", "GET", one)
    await r.play("list_counterparties", "GET", path)
    by_type = f"/api/v1/documents/{PROOF}/"
    await play_documents(r, by_type, "/api/v2/documents/", read="/api/v2/documents/")


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
    wires = await r.play("list_wires", "GET", f"{v1}/wires/")
    await r.play("get_wire", "GET", f"{v1}/wires/{wires['items'][0]['id']}/")
    listed = await r.play("list_transactions", "GET", f"{v2}/transactions/")
    one = listed["items"][0]["id"]
    await r.play("get_transaction", "GET", f"{v2}/transactions/{one}/")
    await r.play_file("get_transactions_csv", f"{v2}/transactions.csv")
    await r.play_file("get_trades_csv", f"{v1}/trades.csv")


async def _play_team(r):
    """Invite two, let one of them be forgotten, and look at the team."""
    path = "/api/v1/team/"
    person = {
        "first_name": "Ben",
        "last_name": "Ode",
        "email": "ben@northwind.example",
        "phone_number": "+12025550144",
        "role": "MANAGER",
    }
    ben = (await r.play("invite_team_member", "POST", f"{path}invite/", body=person))["member_id"]
    r.name(ben)
    await r.play("resend_invite", "POST", f"{path}{ben}/invite/")
    await r.play("update_team_member", "PUT", f"{path}{ben}/", body={"role": "APPROVER"})
    await r.play("get_team_member", "GET", f"{path}{MEMBER}/")
    await r.play("get_team", "GET", path)
    await r.play("cancel_invite", "DELETE", f"{path}{ben}/invite/")


async def _play_programs(r):
    """Make a program, give it other keys, and deactivate it."""
    path = "/api/v1/team/service-users/"
    keys = cases.NOBODYS_KEYS
    new = {
        "name": "Ledger",
        "description": "Books what was paid.",
        "scopes": ["pockets.read", "customer.read"],
        "public_key": keys[0],
    }
    made = await r.play("create_service_user", "POST", path, body=new)
    r.name(made["member_id"], str(UUID(made["client_id"])))
    path = f"{path}{made['member_id']}/"
    await r.play("get_service_user", "GET", path)
    await r.play("add_service_user_key", "POST", f"{path}keys/", body={"public_key": keys[1]})
    await r.play("rotate_service_user_keys", "POST", f"{path}keys/rotate/", body={"public_key": keys[2]})
    await r.play("list_service_user_keys", "GET", f"{path}keys/")
    await r.play("revoke_service_user_key", "DELETE", f"{path}keys/{made['key_id']}/")
    await r.play("deactivate_team_member", "DELETE", f"/api/v1/team/{made['member_id']}/")


async def _play_told(r):
    """Read what the team was told, and who did what; times and ids as they may be."""
    v1 = "/api/v1"
    told, audience = f"{v1}/notifications/", f"{v1}/notification-audiences/"
    known: dict[str, str] = {}
    one = (await r.play("list_notifications", "GET", told))["items"][0]["id"]
    await r.play("get_notification", "GET", f"{told}{one}/")
    await r.play("update_notification", "PATCH", f"{told}{one}/", body={"status": "READ"})
    await r.play("list_notification_audiences", "GET", audience)
    await r.play("get_notification_audience", "GET", f"{audience}FUNDS_RECEIVED/")
    chosen = {"roles": ["ADMIN"], "user_ids": [str(USER)]}
    await r.play("set_notification_audience", "PUT", f"{audience}FUNDS_RECEIVED/", body=chosen)
    await r.play("clear_notification_audience", "DELETE", f"{audience}FUNDS_RECEIVED/")
    await r.play("list_audit_logs", "GET", f"{v1}/team/audit-logs/")
    of_member = f"{v1}/team/members/{MEMBER}/audit-logs/"
    await r.play("list_member_audit_logs", "GET", of_member)
    await r.play_file("get_audit_logs_csv", f"{v1}/team/audit-logs.csv")
    for name in (
        "list_notifications",
        "get_notification",
        "update_notification",
        "list_audit_logs",
        "list_member_audit_logs",
    ):
        r.notes[name] = dated(r.notes[name], known)


def dated(told, known):
    """Return what lives on the wall clock and has ids of chance, with others in their places."""
    if isinstance(told, list):
        return [dated(each, known) for each in told]
    if not isinstance(told, dict):
        return known.get(told, told) if isinstance(told, str) else told
    shown = {name: dated(each, known) for name, each in told.items()}
    if told.get("object_type") == "CustomerNotification":
        known.setdefault(told["id"], str(ids.derive(SEED, OPERATOR, 2100 + len(known))))
        shown |= {"created_at": AT, "id": known[told["id"]]}
    if told.get("object_type") == "CustomerAuditLogEntry":
        known.setdefault(told["id"], str(ids.derive(SEED, OPERATOR, 2100 + len(known))))
        shown |= {"timestamp": AT, "id": known[told["id"]], "user_agent": "books/1.0"}
    return shown


if __name__ == "__main__":
    asyncio.run(write(EXAMPLES, record))
