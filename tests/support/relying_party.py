"""A program that relies on the authorization server, written against the specifications."""

import secrets
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
from tests.support.oauth_clients import KEYS, REDIRECT, SPA, base64url, proof, raw_jwt, without_none

from billfold.oauth import consent
from billfold.oauth.server.token_exchange import challenge_of
from billfold.platform import ids
from billfold.platform.clock import wall_now

ISSUER = "https://auth.localhost:8443"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
PAR, TOKEN, AUTHORIZE = "/api/oauth2/par", "/api/oauth2/token", "/api/oauth2/authorize"


@dataclass
class Came:
    """What came back to the program's address."""

    address: str
    fields: dict[str, str]


class Relying:
    """Sends what a client sends; every part can be changed, and left out with None."""

    def __init__(self, bank, auth_app, client, person, *, key=None):
        self.bank, self.client, self.person = bank, client, person
        self.key = key or KEYS["ES256"]
        self.proof_key = SPA
        self.verifier = base64url(secrets.token_bytes(32))
        self.session_id = ids.new()
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(auth_app, raise_app_exceptions=False), base_url=ISSUER
        )

    async def close(self):
        await self.http.aclose()

    # -- parts -----------------------------------------------------------------------

    def assertion(self, *, key=None, header=None, **changed):
        """Return a client assertion."""
        now = int(time.time())
        claims = {
            "iss": self.client.client_id,
            "sub": self.client.client_id,
            "aud": ISSUER,
            "iat": now,
            "exp": now + 60,
            "jti": str(ids.new()),
        } | changed
        return raw_jwt(key or self.key, without_none(claims), {"typ": "JWT"} | (header or {}))

    def authenticated(self, form, **changed):
        """Return a form with the fields that prove the client."""
        full = {
            "client_id": self.client.client_id,
            "client_assertion_type": JWT_BEARER,
            "client_assertion": self.assertion(),
        }
        return without_none({**full, **form, **changed})

    def proof_for(self, path, **changed):
        """Return a DPoP proof for a POST to a path."""
        return proof("POST", ISSUER + path, **{"key": self.proof_key, **changed})

    def asked(self, **changed):
        """Return the parameters of an authorization request."""
        full = {
            "client_id": self.client.client_id,
            "response_type": "code",
            "redirect_uri": REDIRECT,
            "scope": "openid pockets.read",
            "state": "a state",
            "nonce": "a nonce",
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        }
        return without_none(full | changed)

    # -- requests --------------------------------------------------------------------

    async def post(self, path, form, *, dpop=None, **headers):
        """Post a form, with a proof or without."""
        sent = headers | ({} if dpop is None else {"dpop": dpop})
        return await self.http.post(path, data=form, headers=sent)

    async def push(self, *, dpop=None, proving=None, **changed):
        """Push an authorization request."""
        form = self.authenticated(self.asked(**changed), **(proving or {}))
        return await self.post(PAR, form, dpop=dpop)

    async def pushed(self, **changed):
        """Return the request_uri of a pushed request."""
        answer = await self.push(**changed)
        assert answer.status_code == 201, answer.text
        return answer.json()["request_uri"]

    async def browse(self, **query):
        """Bring a browser to the authorization endpoint."""
        full = {"client_id": self.client.client_id} | query
        return await self.http.get(AUTHORIZE, params=without_none(full))

    async def waiting(self, **changed):
        """Return the id of a request that waits for a person's answer."""
        if self.client.is_fapi2:
            answer = await self.browse(request_uri=await self.pushed(**changed))
        else:
            answer = await self.browse(**self.asked(**changed))
        assert answer.status_code == 303, answer.text
        where = urlsplit(answer.headers["location"])
        assert where._replace(query="").geturl() == f"{ISSUER}/consent"
        return UUID(parse_qs(where.query)["request"][0])

    async def approved(self, request_id=None, **changed):
        """Let the person say yes; return what comes back."""
        request_id = request_id or await self.waiting(**changed)
        now = wall_now()
        async with self.bank.pool.acquire() as conn:
            address = await consent.approve(
                conn,
                request_id,
                user_id=self.person.user_id,
                customer_id=self.person.customer_id,
                authenticated_at=now,
                session_id=self.session_id,
                issuer=ISSUER,
                now=now,
            )
        return came(address)

    async def code(self, **changed):
        """Return an authorization code."""
        return (await self.approved(**changed)).fields["code"]

    async def exchange(self, code, /, *, dpop="yes", proving=None, **changed):
        """Exchange a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": self.verifier,
        } | changed
        return await self.ask_token(form, dpop=dpop, proving=proving)

    async def ask_token(self, form, *, dpop="yes", proving=None):
        """Post to the token endpoint; "yes" makes a good proof, None sends none."""
        form = self.authenticated(form, **(proving or {}))
        sent = self.proof_for(TOKEN) if dpop == "yes" else dpop
        return await self.post(TOKEN, form, dpop=sent)

    async def tokens(self, *, dpop="yes", **changed):
        """Return the tokens of a whole flow."""
        answer = await self.exchange(await self.code(**changed), dpop=dpop)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refresh(self, token, *, dpop="yes", proving=None, **changed):
        """Use a refresh token."""
        form = {"grant_type": "refresh_token", "refresh_token": token} | changed
        return await self.ask_token(form, dpop=dpop, proving=proving)

    async def userinfo(self, token, *, dpop="yes", scheme="DPoP", path="/api/v1/user"):
        """Ask who signed in."""
        made = proof("GET", ISSUER + path, key=self.proof_key, token=token)
        sent = made if dpop == "yes" else dpop
        headers = {"authorization": f"{scheme} {token}"} | ({} if sent is None else {"dpop": sent})
        return await self.http.get(path, headers=headers)

    async def is_good(self, token, **options):
        """Tell whether an access token is still good for something."""
        return (await self.userinfo(token, **options)).status_code == 200


def came(address):
    """Return what an answer carries to an address."""
    parts = urlsplit(address)
    fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Came(parts._replace(query="").geturl(), fields)


def refused(answer, error, status=400):
    """Check that an answer is this error of OAuth; return what it says."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    told = answer.json()
    assert told["error"] == error, told
    assert set(told) == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"
    return told["error_description"]
