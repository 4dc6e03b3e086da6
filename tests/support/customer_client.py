"""A member at his desk: every step is a request to the whole Customer API with an access token."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
from tests.support.oauth_clients import SPA, program, proof
from tests.support.oauth_users import member
from tests.support.partner_client import json_of
from tests.support.partner_desk import Opened, PartnerApi, query_of
from typing_extensions import override

from billfold.oauth import clients, grants
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.sandbox.control.clock_stepper import ClockStepper

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
    """Calls operations of the Customer API; what the partner's desk can do beside it can."""

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
