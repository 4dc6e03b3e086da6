"""Plays one request per operation of the Partner API and keeps what was sent and answered.

`python -m tests.reference.recorder` writes the package's examples anew; the test beside this
file plays them again and compares.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from uuid import UUID

from tests.reference.ach_recorder import play_ach
from tests.reference.events_recorder import play_events
from tests.reference.payees_recorder import play_verifications
from tests.support.partner_client import PartnerClient, close_app
from tests.support.whole_bank import SEED, close_bank, open_bank

from billfold.access.partners import credentials
from billfold.accounts.commands import EnrolCustomer
from billfold.http.partner_api import app as partner_api
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.pool import create_pool
from billfold.platform.postgres import embedded as embedded_postgres
from billfold.wiring.server import make_partner_app

EXAMPLES = Path(partner_api.__file__).with_name("examples.json")
OPERATOR = UUID("00000000-0000-8000-8000-000000000001")
HIDDEN = {"token": "q7Zr...", "access_token": "q7Zr...", "expires": "2025-06-02T14:00:00+00:00"}

_AT = "2025-06-02T13:00:00.000000Z"
ON_THE_WALL = {
    "AuthorizationRequest": {"content_hash": "9b" * 32},
    "Subscription": {"time_created": _AT, "updated_at": _AT},
}
"""Fields of objects that live on the wall clock, or on chance."""


class Recorder:
    """A partner whose every id repeats, and the notebook of what he asked and was told."""

    def __init__(self, bank, app, client):
        self.bank, self.app, self.client = bank, app, client
        self.sent = 0
        self.notes = {}

    def next_key(self):
        """Return a key that repeats in every run."""
        self.sent += 1
        return ids.derive(SEED, OPERATOR, self.sent)

    async def play(self, name, method, path, body=None, *, query=""):
        """Send a request under the next key; note it under its operation's name, once."""
        key = self.next_key()
        raw = {} if body is None else body
        answer = await self.client.send(method, path, raw, key=key, query=query)
        assert answer.status_code < 300, (name, answer.text)
        told = answer.json() if answer.content else None
        note = {} if body is None else {"request": body}
        if told is not None:
            note["response"] = masked(told)
        self.notes.setdefault(name, note)
        return told


def masked(told):
    """Hide what the wall clock and chance decide."""
    if isinstance(told, list):
        return [masked(each) for each in told]
    if not isinstance(told, dict):
        return told
    hidden = HIDDEN | ON_THE_WALL.get(str(told.get("object_type")), {})
    return {name: hidden.get(name, masked(value)) for name, value in told.items()}


async def partner_of(bank):
    """A partner whose ids are derived, so that every answer repeats."""
    own, partner_id, user_id = (ids.derive(SEED, OPERATOR, 1000 + n) for n in range(3))
    await bank.engine.submit(
        EnrolCustomer(
            caller="recorder",
            key=OPERATOR,
            customers=(own,),
            partner_id=partner_id,
            role="partner",
            type="BUSINESS",
            name="Acme",
            profile={},
        )
    )
    now = wall_now()
    async with bank.pool.acquire() as conn:
        made = await credentials.create_partner(
            conn,
            bank.vault,
            slug="acme",
            name="Acme",
            own_customer_id=own,
            rate_per_minute=10_000,
            money_per_minute=10_000,
            features=("wires",),
            now=now,
            partner_id=partner_id,
        )
        await credentials.create_partner_user(
            conn, partner_id, username="acme-app", password="correct horse battery", now=now, user_id=user_id
        )
        token, _ = await credentials.issue_token(conn, partner_id=partner_id, user_id=user_id, now=now)

    return SimpleNamespace(slug="acme", secret=made.shared_secret, token=token)


async def record(bank):
    """The examples: operationId -> {"request": ..., "response": ...}."""
    app = make_partner_app(bank)
    client = PartnerClient(app, await partner_of(bank))
    recorder = Recorder(bank, app, client)
    await _play_all(recorder)
    await _simulate(recorder)
    await play_events(recorder)
    await client.close()
    await close_app(app)
    return recorder.notes


async def _let_arrive(r, portal, other, theirs):
    """Money and bills from outside."""
    v1 = "/api/v1"
    await r.play(
        "sandbox_wire",
        "POST",
        f"{v1}/sandbox/wire/",
        body={"portal_id": portal, "amount_usdc": 25_000_000, "sender_name": "Acme"},
    )
    await r.play(
        "sandbox_fund", "POST", f"{v1}/sandbox/fund/", body={"account_id": other, "amount_usdc": 1_500_000, "count": 1}
    )
    await r.play(
        "sandbox_security_transfer",
        "POST",
        f"{v1}/sandbox/security-transfer/",
        body={
            "account_id": theirs,
            "direction": "IN",
            "cusip": "912797PT8",
            "quantity": 100,
            "counterparty_name": "Harbor Custody",
            "acquired_on": "2025-05-29",
            "cost_usdc": 995_000,
        },
    )


async def _play_all(r):
    v1, v2 = "/api/v1", "/api/v2"
    await r.play("log_in", "POST", f"{v1}/login/", body={"username": "acme-app", "password": "correct horse battery"})
    r.notes["exchange_assertion"] = {
        "response": {"access_token": HIDDEN["token"], "token_type": "Bearer", "expires_in": 3600}
    }
    customer = (await r.play("sandbox_customer", "POST", f"{v1}/sandbox/customers/", body={"name": "Northwind"}))["id"]
    payee = (await r.play("-", "POST", f"{v1}/sandbox/customers/", body={"name": "Contoso"}))["id"]
    made = f"{v2}/customers/{customer}/pockets/"
    pocket = (
        await r.play("create_pocket", "POST", made, body={"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W"})
    )["id"]
    other = (await r.play("-", "POST", made, body={"pocket_name": "Long", "deposit_strategy_id": "UST-26W"}))["id"]
    theirs = (
        await r.play(
            "-",
            "POST",
            f"{v2}/customers/{payee}/pockets/",
            body={"pocket_name": "Inbox", "deposit_strategy_id": "UST-13W"},
        )
    )["id"]
    await r.play("sandbox_pocket", "POST", f"{v1}/sandbox/pockets/{pocket}/", body={"real_time_yield": True})
    portals = f"{v2}/pockets/{pocket}/portals/"
    portal = (await r.play("list_portals", "GET", portals))["items"][0]["id"]
    await _let_arrive(r, portal, other, theirs=theirs)
    await _play_reads(r, customer, pocket)
    await _play_portals(r, customer, pocket)
    address = (await r.play("-", "GET", f"{v2}/pockets/{theirs}/portals/"))["items"][0]
    await _play_payments(r, customer, pocket, address=address["network_address"])
    await r.play(
        "update_customer", "PATCH", f"{v1}/customers/{customer}/", body={"email": "treasury@northwind.example"}
    )
    await r.play("update_pocket", "PATCH", f"{made}{other}/", body={"pocket_name": "Longer"})
    await _play_clock(r)
    r.notes.pop("-", None)


async def _play_reads(r, customer, pocket):
    v1, v2 = "/api/v1", "/api/v2"
    of_customer, of_pocket = f"{v2}/customers/{customer}", f"{v2}/pockets/{pocket}"
    account = f"{v1}/service-accounts/{pocket}"
    for name, path in (
        ("list_customers", f"{v1}/customers/"),
        ("get_customer", f"{v1}/customers/{customer}/"),
        ("list_accounts", f"{v1}/customers/{customer}/service-accounts/"),
        ("get_account", f"{account}/"),
        ("list_customer_pockets", f"{of_customer}/pockets/"),
        ("list_pockets", f"{v2}/pockets/"),
        ("get_customer_pocket", f"{of_customer}/pockets/{pocket}/"),
        ("get_pocket", f"{of_pocket}/"),
        ("get_pocket_earnings", f"{of_pocket}/earnings/"),
        ("list_earnings", f"{v2}/earnings/"),
        ("list_trading_strategies", f"{v2}/trading-strategies/"),
        ("list_pocket_configurations", f"{v2}/pocket-configurations/"),
        ("list_transactions", f"{v2}/transactions/"),
        ("list_customer_transactions", f"{of_customer}/transactions/"),
        ("list_v1_customer_transactions", f"{v1}/customers/{customer}/transactions/"),
        ("list_v1_transactions", f"{account}/transactions/"),
        ("list_v1_customer_trades", f"{v1}/customers/{customer}/trades/"),
        ("list_v1_trades", f"{account}/trades/"),
        ("list_customer_trades", f"{of_customer}/trades/"),
        ("list_pocket_trades", f"{of_pocket}/trades/"),
    ):
        await r.play(name, "GET", path)
    one = (await r.play("list_pocket_transactions", "GET", f"{of_pocket}/transactions/"))["items"][0]
    await r.play("get_transaction", "GET", f"{of_pocket}/transactions/{one['id']}/")
    await r.play("get_v1_transaction", "GET", f"{account}/transactions/{one['id']}/")


async def _play_portals(r, customer, pocket):
    v2 = f"/api/v2/pockets/{pocket}/portals/"
    v1 = f"/api/v1/service-accounts/{pocket}/portals/"
    made = (await r.play("create_portal", "POST", v2, body={"name": "Payroll"}))["id"]
    await r.play("get_portal", "GET", f"{v2}{made}/")
    await r.play("rename_portal", "PATCH", f"{v2}{made}/", body={"name": "Wages"})
    await r.play("get_funding_instructions", "GET", f"{v2}{made}/funding-instructions/")
    await r.play("list_customer_portals", "GET", f"/api/v2/customers/{customer}/portals/")
    old = (await r.play("create_account_portal", "POST", v1, body={"name": "Suppliers"}))["id"]
    await r.play("list_account_portals", "GET", v1)
    await r.play("get_account_portal", "GET", f"{v1}{old}/")
    await r.play("rename_account_portal", "PATCH", f"{v1}{old}/", body={"name": "Vendors"})
    await r.play("close_account_portal", "POST", f"{v1}{old}/close/")
    path = f"/api/v1/customers/{customer}/portals/"
    await r.play("list_customer_account_portals", "GET", path)


async def _play_payments(r, customer, pocket, address):
    path = f"/api/v2/customers/{customer}/counterparties/"
    body = {
        "type": "on_us",
        "account_number": address,
        "counterparty_name": {"type": "business", "business_name": "Contoso"},
    }
    linked = (await r.play("create_counterparty", "POST", path, body=body))["id"]
    await r.play("list_counterparties", "GET", path)
    await r.play("get_counterparty", "GET", f"{path}{linked}/")
    await r.play("update_counterparty", "PATCH", f"{path}{linked}/", body={"display_name": "Supplier"})
    await play_verifications(r, customer)
    asked = {
        "type": "PEER_TO_PEER",
        "from_account": {"id": pocket, "type": "SERVICE_ACCOUNT"},
        "counterparty_id": linked,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_234_550},
        "description": "Invoice 7",
    }
    done = await r.play("create_on_us_transfer", "POST", "/api/v1/transfers/on-us/", body=asked)
    await r.play("get_on_us_transfer", "GET", f"/api/v1/transfers/on-us/{done['id']}/")
    await _play_wires(r, customer, pocket)


async def _play_wires(r, customer, pocket):
    portal = (await r.play("-", "GET", f"/api/v2/pockets/{pocket}/portals/"))["items"][0]["id"]
    box, path = "/api/v1/sandbox", f"/api/v1/service-accounts/{pocket}/wires/"
    linked = await r.play(
        "-",
        "POST",
        f"/api/v2/customers/{customer}/counterparties/",
        body={
            "type": "wire",
            "routing_number": "121182904",
            "identifier": "5647772655",
            "counterparty_name": {"type": "business", "business_name": "Beta LLC"},
            "address": {
                "street_address": "1 Main St",
                "city": "Reno",
                "postal_code": "89501",
                "state": "NV",
                "country": "US",
            },
            "verification": {"type": "incoming_wire"},
        },
    )
    theirs = {"sender_account_number": "5647772655", "sender_routing_number": "121182904"}
    proof = {"portal_id": portal, "amount_usdc": 1_00, "sender_name": "Beta LLC", **theirs}
    await r.play("-", "POST", f"{box}/wire/", body=proof)
    asked = {"counterparty_id": linked["id"], "amount_usdc": 4_000_000, "description": "Lease 9"}
    first = (await r.play("create_wire", "POST", path, body=asked))["id"]
    second = (await r.play("-", "POST", path, body={**asked, "amount_usdc": 1_00}))["id"]
    await r.play("sandbox_submit_wire", "POST", f"{box}/wires/{first}/submit/", body={})
    await r.play("sandbox_acknowledge_wire", "POST", f"{box}/wires/{first}/acknowledge/", body={})
    back = {"reason": "AC04", "information": "Account closed"}
    await r.play("sandbox_return_wire", "POST", f"{box}/wires/{first}/return/", body=back)
    why = {"reason": "AC01"}
    await r.play("sandbox_reject_wire", "POST", f"{box}/wires/{second}/reject/", body=why)
    arrived = await r.play("-", "GET", "/api/v1/wires/", query="direction=INCOMING")
    paid = next(each["id"] for each in arrived["items"] if each["wire_type"] == "PAYMENT")
    request = f"{box}/wires/{paid}/request-return/"
    await r.play("sandbox_request_wire_return", "POST", request, body={"reason": "DUPL"})
    await r.play("list_wires", "GET", "/api/v1/wires/")
    await r.play("get_wire", "GET", f"/api/v1/wires/{first}/")
    await play_ach(r, customer, pocket)


async def _simulate(r):
    event = {
        "event_id": "0d1c2b3a-4f5e-4697-8877-665544332211",
        "event_type": "transfers.wire.in.rejected",
        "timestamp": "2025-06-02T09:00:00-04:00",
        "payload": {
            "wire_id": "5d4c3b2a-1f0e-4d9c-8b7a-697867564534",
            "service_account_id": "8c2e6f1a-0d3b-4f7e-8a9c-5b1d2e3f4a60",
        },
    }
    await r.play("sandbox_webhook", "POST", "/api/v1/sandbox/webhook/", body=event)


async def _play_clock(r):
    clock = "/api/v1/sandbox/clock/"
    await r.play("sandbox_clock", "GET", clock)
    await r.play("sandbox_clock_advance", "POST", f"{clock}advance/", body={"business_days": 1})
    await r.play("sandbox_clock_run_to_next_event", "POST", f"{clock}run-to-next-event/")
    await r.play("sandbox_clock_set", "POST", f"{clock}set/", body={"now": "2025-06-05T09:00:00-04:00"})
    await r.play("sandbox_clock_freeze", "POST", f"{clock}freeze/")
    resumed = await r.play("-", "POST", f"{clock}resume/")
    frozen = r.notes["sandbox_clock_freeze"]["response"]
    assert set(resumed) == set(frozen)
    r.notes["sandbox_clock_resume"] = {"response": {**frozen, "frozen": False}}


async def write(examples, record):
    """Record in a bank of its own and write the package's examples anew."""
    with TemporaryDirectory() as folder:
        server = embedded_postgres.start(Path(folder), settings={"fsync": "off"})
        try:
            dsn = await server.create_database("reference")
            pool = await create_pool(dsn, max_size=1)
            async with pool.acquire() as conn:
                await runner.up(conn)
            await pool.close()
            bank = await open_bank(dsn)
            notes = await record(bank)
            await close_bank(bank)
        finally:
            embedded_postgres.stop(server)
    examples.write_text(text_of(notes))


def text_of(notes):
    """The examples as JSON, one operation a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(notes[name], sort_keys=True)}" for name in sorted(notes)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    asyncio.run(write(EXAMPLES, record))
