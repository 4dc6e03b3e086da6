"""The setup of a story: a bank behind both APIs, a partner, and members of its customers."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import msgspec
from tests.support.oauth import SPA, member, program, proof
from tests.support.whole_bank import EngineCommands
from typing_extensions import override

from billfold.identity.partners import credentials
from billfold.oauth import clients, grants
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_password, sign_request
from billfold.sandbox.control.clock_stepper import ClockStepper

PASSWORD = "correct horse battery"
_HASH = hash_password(PASSWORD)
_ADD_USER = """
INSERT INTO partner_user (user_id, partner_id, username, password_hash, created_at)
VALUES ($1, $2, $3, $4, $5)
"""


@dataclass
class Acme:
    """A partner with a user, his signing secret and a token."""

    slug: str
    partner_id: object
    own_customer_id: object
    user_id: object
    username: str
    secret: str
    token: str


async def new_partner(bank, slug="acme", *, rate=10_000, money=10_000, features=(), known_ids=None):
    """Make a partner with everything that is needed to call; `known_ids` are its own, its customer's and its user's."""
    partner_id, own, user_id = known_ids or (ids.new() for _ in range(3))
    await EngineCommands(bank).enrol(own, slug, partner_id=partner_id, role="partner")
    now = wall_now()
    async with bank.pool.acquire() as conn:
        made = await credentials.create_partner(
            conn,
            bank.vault,
            slug=slug,
            name=slug.title(),
            own_customer_id=own,
            rate_per_minute=rate,
            money_per_minute=money,
            now=now,
            features=features,
            partner_id=partner_id,
        )
        await conn.execute(_ADD_USER, user_id, partner_id, f"{slug}-app", _HASH, now)
        token, _ = await credentials.issue_token(conn, partner_id=partner_id, user_id=user_id, now=now)
    return Acme(slug, partner_id, own, user_id=user_id, username=f"{slug}-app", secret=made.shared_secret, token=token)


async def close_app(app):
    """Close an application, as its server does on shutdown."""
    await app.close()


def json_of(body):
    """Return the bytes of a JSON body, or those given."""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


class PartnerClient:
    """Sends requests to an application in this process, signed by a partner."""

    def __init__(self, app, partner, *, host=None, scheme="https", address="127.0.0.1"):
        self.partner = partner
        host = host or f"{partner.slug}.localhost"
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 123)),
            base_url=f"{scheme}://{host}",
        )

    def headers(self, path, body, *, key=None, secret=None):
        """Return the three headers of a request."""
        key = str(key or ids.new())
        return {
            "authorization": f"Bearer {self.partner.token}",
            "x-service-idempotency": key,
            "x-service-signature": sign_request(secret or self.partner.secret, key, path, body=body),
        }

    async def send(self, method, path, body=b"", *, key=None, query="", headers=None):
        """Send a signed request; `headers` replaces some, None removes one."""
        raw = json_of(body)
        sent = self.headers(path, raw, key=key) | {"content-type": "application/json"}
        for name, value in (headers or {}).items():
            if value is None:
                sent.pop(name, None)
            else:
                sent[name] = value
        url = path + (f"?{query}" if query else "")
        return await self.http.request(method, url, content=raw, headers=sent)

    async def get(self, path, **options):
        return await self.send("GET", path, **options)

    async def post(self, path, body=b"{}", **options):
        return await self.send("POST", path, body, **options)

    async def close(self):
        await self.http.aclose()


UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Opened:
    """A Pocket with its customer and its first portal."""

    customer: str
    id: str
    portal: str

    @property
    def path(self):
        """Return where the Pocket is."""
        return f"/api/v2/pockets/{self.id}/"

    @property
    def key(self):
        """Return customer_id and pocket_id as the database knows them."""
        return UUID(self.customer), UUID(self.id)


def query_of(filters):
    """Return the query of these filters; a list repeats its name."""
    pairs = [
        (name, each)
        for name, value in (filters or {}).items()
        for each in (value if isinstance(value, list) else [value])
    ]
    return "&".join(f"{quote(name)}={quote(str(value))}" for name, value in pairs)


class PartnerApi:
    """Calls operations and says how they must answer; moves the clock; lets money arrive."""

    def __init__(self, bank, app, partner):
        self.bank, self.app, self.partner = bank, app, partner
        self.client = PartnerClient(app, partner)
        self.clock = ClockStepper(bank)

    async def close(self):
        await self.client.close()

    # -- calling ---------------------------------------------------------------------

    async def send(self, method, path, body=b"", *, filters=None, key=None, headers=None):
        """Send a signed request; see `PartnerClient.send`."""
        return await self.client.send(method, path, body, key=key, query=query_of(filters), headers=headers)

    async def ask(self, method, path, body=b"", *, status, **options):
        """Return the answer to a request, which must have this status."""
        answer = await self.send(method, path, body, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def get(self, path, filters=None, *, status=200):
        """Return the JSON of a resource or a page."""
        return (await self.ask("GET", path, status=status, filters=filters)).json()

    async def post(self, path, body, status=201, **options):
        """Return the JSON of the created object, None for an empty response."""
        answer = await self.ask("POST", path, body, status=status, **options)
        return answer.json() if answer.content else None

    async def patch(self, path, body, status=200, **options):
        """Return the JSON of the changed object."""
        return (await self.ask("PATCH", path, body, status=status, **options)).json()

    async def refused(self, method, path, body=b"", *, status, code, **options):
        """Check that the request is refused with a problem of this code; return the problem."""
        problem = (await self.ask(method, path, body, status=status, **options)).json()
        assert problem["code"] == code, problem
        return problem

    async def invalid(self, method, path, body=b"", *, loc, **options):
        """Check that the request is refused for a mistake at this place."""
        answer = (await self.ask(method, path, body, status=422, **options)).json()
        places = [".".join(map(str, each["loc"])) for each in answer["detail"]]
        assert loc in places, answer
        assert all(set(each) >= {"loc", "msg", "type"} for each in answer["detail"])

    async def pages(self, path, filters=None, *, limit=2):
        """Return all items of a list, read page by page, and check the way back."""
        page = await self.get(path, {**(filters or {}), "limit": limit})
        seen, way = [page["items"]], [page]
        assert page["prev_page"] is None
        assert page["object_type"] == "CursorList"
        while page["next_page"] is not None:
            following = {**(filters or {}), "limit": limit, "cursor": page["next_page"]}
            page = await self.get(path, following)
            assert page["items"], "a cursor led to an empty page"
            seen.append(page["items"])
            way.append(page)
        back = page
        for earlier in reversed(way[:-1]):
            before = {**(filters or {}), "limit": limit, "cursor": back["prev_page"]}
            back = await self.get(path, before)
            assert back["items"] == earlier["items"]
        assert back["prev_page"] is None
        assert all(len(items) == limit for items in seen[:-1])
        return [item for items in seen for item in items]

    # -- the world -------------------------------------------------------------------

    async def customer(self, name="Northwind", kind="BUSINESS"):
        """Return the id of a new customer."""
        made = await self.post("/api/v1/sandbox/customers/", {"name": name, "type": kind})
        return made["id"]

    async def pocket(self, customer=None, *, weeks=4, name="Reserve", **fields):
        """Open a Pocket, for a new customer when none is given."""
        customer = customer or await self.customer()
        body = {"pocket_name": name, "deposit_strategy_id": f"UST-{weeks}W", **fields}
        made = await self.post(f"/api/v2/customers/{customer}/pockets/", body)
        portals = await self.get(f"/api/v2/pockets/{made['id']}/portals/")
        return Opened(customer, made["id"], portals["items"][0]["id"])

    async def facilitation(self, cents=0):
        """Open the partner's own Pocket, from which he funds customers."""
        own = self.partner.own_customer_id
        place = await EngineCommands(self.bank).new_pocket(
            own, name="Facilitation", partner_id=self.partner.partner_id, type="FACILITATION"
        )
        opened = Opened(*map(str, place))
        if cents:
            await self.wire(opened, cents)
        return opened

    async def wire(self, pocket, cents, sender="Contoso"):
        """Let a wire arrive at the Pocket's first portal."""
        body = {"portal_id": pocket.portal, "amount_usdc": cents, "sender_name": sender}
        await self.ask("POST", "/api/v1/sandbox/wire/", body, status=202)

    async def ach(self, pocket, cents, count=1):
        """Let ACH credits arrive at the Pocket."""
        body = {"account_id": pocket.id, "amount_usdc": cents, "count": count}
        await self.ask("POST", "/api/v1/sandbox/fund/", body, status=202)

    async def funded(self, cents, customer=None, **fields):
        """Open a Pocket into which a wire has come."""
        opened = await self.pocket(customer, **fields)
        await self.wire(opened, cents)
        return opened

    async def days(self, count):
        """Let business days go by."""
        await self.clock.advance_business_days(count)

    async def until(self, at):
        """Set the clock to an instant or some text of one."""
        await self.clock.set_to(datetime.fromisoformat(at) if isinstance(at, str) else at)

    async def later(self, **duration):
        """Let some time go by."""
        await self.clock.advance(timedelta(**duration))

    async def transfer(self, origin, to, amount, status="COMPLETED", **fields):
        """Move money between two Pockets of one customer, or as `type` says."""
        asked = {"type": "FULL_WITHDRAWAL"} if amount is None else {"type": "REQUESTED_AMOUNT", "amount_usdc": amount}
        body = {
            "type": "INTERNAL_REALLOCATION",
            "from_account": {"id": origin.id, "type": "SERVICE_ACCOUNT"},
            "to_account": {"id": to.id, "type": "SERVICE_ACCOUNT"} if to else None,
            "amount": asked,
            **fields,
        }
        body = {name: value for name, value in body.items() if value is not None}
        made = await self.post("/api/v1/transfers/on-us/", body)
        assert made["status"] == status, made
        return made

    async def value(self, pocket):
        """Return the value of a Pocket, in cents."""
        shown = await self.get(pocket.path)
        return shown["portfolio"]["total_value"]["value"]

    async def counts(self):
        """Return how many journals, trades, activities and transfers there are."""
        tables = ("journal_entry", "posting", "trade", "transaction", "transfer", "portal", "counterparty")
        return {table: await self.bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in tables}


EVERYTHING = tuple(SCOPES)


@dataclass
class Token:
    """An access token with the key it is bound to, if any."""

    text: str
    key: Any = None


@dataclass
class Team:
    """A customer, the client that works for it, and who is in its team."""

    customer: str
    client_id: str
    user_id: UUID | None
    scopes: tuple[str, ...] = field(default=EVERYTHING)


async def join(bank, customer, *, role="ADMIN", client_id="books", scopes=EVERYTHING, profile="documented"):
    """Make a new person a member of a customer; register the client when it is not there."""
    async with bank.pool.acquire() as conn:
        if await clients.find_client(conn, client_id) is None:
            await program(conn, client_id, keys=(), scopes=EVERYTHING, profile=profile)
        user = await member(conn, UUID(customer), role=role)
    return Team(customer, client_id, user.user_id, scopes=scopes)


async def token_for(bank, team, *, scopes=None, key=SPA, age=timedelta(0)):
    """Return an access token, bound to `key` or a bearer's; `age` says how old it is."""
    text = await grants.issue_access(
        bank.pool,
        client_id=team.client_id,
        customer_id=UUID(team.customer),
        scopes=team.scopes if scopes is None else scopes,
        now=wall_now() - age,
        user_id=team.user_id,
        jkt=None if key is None else key.thumbprint,
    )
    return Token(text, key)


class MemberDesk(PartnerApi):
    """Calls operations of the Customer API, in addition to everything the partner's desk does."""

    def __init__(self, bank, customer_app, team, token):
        self.bank, self.app, self.team, self.token = bank, customer_app, team, token
        self.base = bank.settings.customer_origin
        self.clock = ClockStepper(bank)
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(customer_app, raise_app_exceptions=False), base_url=self.base
        )

    @override
    async def close(self):
        await self.http.aclose()

    def headers(self, method, path, token, **changed):
        """Return the headers that prove a token; `changed` are members of the proof."""
        if token is None:
            return {}
        if token.key is None:
            return {"authorization": f"Bearer {token.text}"}
        sent = proof(method, self.base + path, key=token.key, token=token.text, **changed)
        return {"authorization": f"DPoP {token.text}", "dpop": sent}

    @override
    async def send(self, method, path, body=b"", *, filters=None, key=None, headers=None, token=0):
        """Send a request with the desk's token or another; None sends none."""
        token = self.token if token == 0 else token
        sent = self.headers(method, path, token) | {"content-type": "application/json"}
        if key is not None:
            sent["idempotency-key"] = str(key)
        query = query_of(filters)
        url = path + (f"?{query}" if query else "")
        return await self.http.request(method, url, content=json_of(body), headers=sent | (headers or {}))

    @override
    async def pocket(self, customer=None, *, weeks=4, name="Reserve", **fields):
        """Open a Pocket of the customer, who is always the desk's own."""
        assert customer in {None, self.team.customer}
        body = {"pocket_name": name, "deposit_strategy_id": f"UST-{weeks}W", **fields}
        made = await self.post("/api/v2/pockets/", body)
        portals = await self.get(f"/api/v2/pockets/{made['id']}/portals/")
        return Opened(self.team.customer, made["id"], portals["items"][0]["id"])


def new_key():
    """Return an idempotency key."""
    return str(ids.new())
