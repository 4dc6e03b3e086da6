"""A partner of a bank under test, and a client that signs as partners do."""

from dataclasses import dataclass

import httpx
import msgspec
from tests.support.commands import EngineCommands

from billfold.identity.partners import credentials
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import hash_password, sign_request

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
    """Do what the worker does when it stops."""
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
