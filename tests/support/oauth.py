"""Companies, their members, and programs that use the authorization server."""

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from tests.support.whole_bank import VAULT

from billfold.identity.users.contact_details import COLUMNS, USERS
from billfold.oauth import clients, consent
from billfold.oauth.rules.public_keys import from_jwk, to_jwk, to_pem
from billfold.oauth.server.token import challenge_of
from billfold.oauth.types import NewClient
from billfold.platform import ids
from billfold.platform.clock import wall_now

REDIRECT = "https://books.example/callback"
SCOPES = ("openid", "profile", "email", "pockets.read", "pockets.write")


@dataclass
class Key:
    """A private key with all its names."""

    private: Any
    algorithm: str

    @property
    def jwk(self):
        """Return the public half as JWK."""
        return to_jwk(self.private.public_key())

    @property
    def pem(self):
        """Return the public half as PEM."""
        return to_pem(self.private.public_key())

    @property
    def thumbprint(self):
        """Return the RFC 7638 thumbprint."""
        return from_jwk(self.jwk).thumbprint

    def sign(self, claims, **header):
        """Return the claims as a JWT."""
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers=header)


def new_key(algorithm="ES256"):
    """Return a key for an algorithm."""
    if algorithm == "ES256":
        return Key(ec.generate_private_key(ec.SECP256R1()), algorithm)
    if algorithm == "EdDSA":
        return Key(ed25519.Ed25519PrivateKey.generate(), algorithm)
    return Key(rsa.generate_private_key(65537, 2048), algorithm)


KEYS = {each: new_key(each) for each in ("ES256", "PS256", "EdDSA")}
SPA = new_key()
"""The key that proofs are made with."""


async def program(conn, client_id="books", *, keys=("ES256",), **changed):
    """Return a registered client with keys; `fapi2` unless something else is said."""
    fields = {
        "name": "Books",
        "scopes": SCOPES,
        "redirect_uris": (REDIRECT,),
        "post_logout_redirect_uris": ("https://books.example/bye",),
    } | changed
    new = NewClient(**fields)
    made = await clients.register_client(conn, new, now=wall_now(), client_id=client_id)
    for each in keys:
        key = KEYS[each] if isinstance(each, str) else each
        await clients.add_client_key(conn, client_id, key.pem, now=wall_now())
    return made


def base64url(value):
    """Return bytes as JOSE writes them."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def hash_of(token):
    """Return the `ath` of an access token."""
    return base64url(hashlib.sha256(token.encode()).digest())


def proof(method, url, *, key=SPA, token=None, header=None, **changed):
    """Return a DPoP proof; a claim or header member that is None is left out."""
    claims = {
        "jti": str(ids.new()),
        "htm": method,
        "htu": url,
        "iat": int(time.time()),
        "ath": None if token is None else hash_of(token),
    } | changed
    head = {"typ": "dpop+jwt", "jwk": key.jwk} | (header or {})
    return raw_jwt(key, without_none(claims), head)


def from_now(claims):
    """Return claims in which an instant that is given as a duration counts from now."""
    now = int(time.time())
    return {
        name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
        for name, value in claims.items()
    }


def raw_jwt(key, claims, header):
    """Return a JWT whose header is exactly this and `alg`."""
    head = without_none({"alg": key.algorithm} | header)
    parts = [base64url(json.dumps(each).encode()) for each in (head, claims)]
    algorithm = jwt.get_algorithm_by_name(key.algorithm)
    signature = algorithm.sign(".".join(parts).encode(), algorithm.prepare_key(key.private))
    return ".".join([*parts, base64url(signature)])


def without_none(found):
    """Return a dict without its None values."""
    return {name: value for name, value in found.items() if value is not None}


@dataclass
class Member:
    """A person in the team of a customer."""

    user_id: UUID
    member_id: UUID
    customer_id: UUID


async def company(conn, name="Northwind", *, partner_id="new", opened_at=None):
    """Return the id of a customer, of a partner of its own unless told otherwise."""
    customer_id = ids.new()
    await conn.execute(
        "INSERT INTO customer (customer_id, partner_id, role, type, name, account_status, profile, "
        "opened_at, agreement_version) VALUES ($1, $2, 'customer', 'BUSINESS', $3, 'OPEN', '{}', $4, '2025-06-01')",
        customer_id,
        ids.new() if partner_id == "new" else partner_id,
        name,
        opened_at or wall_now(),
    )
    return customer_id


async def member(
    conn, customer_id, *, role="ADMIN", user_id=None, member_id=None, email=None, name="Anna", joined_at=None
):
    """Return a member of a customer's team, a new person unless one is given without an address."""
    now, member_id = wall_now(), member_id or ids.new()
    if user_id is None or email is not None:
        user_id = user_id or ids.new()
        contact = USERS.seal(VAULT, user_id, email or f"{user_id}@example.com", phone_number="+12025550123")
        await conn.execute(
            f"INSERT INTO user_account (user_id, email_verified_at, first_name, last_name, created_at, {COLUMNS}) "
            "VALUES ($1, $2, $3, 'Lind', $2, $4, $5, $6)",
            user_id,
            now,
            name,
            *contact,
        )
    await conn.execute(
        "INSERT INTO membership (customer_id, user_id, member_id, role, status, created_at, "
        "changed_at) VALUES ($1, $2, $3, $4, 'ACTIVE', $5, $5)",
        customer_id,
        user_id,
        member_id,
        role,
        joined_at or now,
    )
    return Member(user_id, member_id, customer_id)


ISSUER = "https://auth.localhost:8443"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
PAR, TOKEN, AUTHORIZE = "/api/oauth2/par", "/api/oauth2/token", "/api/oauth2/authorize"


@dataclass
class Came:
    """A redirect to the client: its address and parameters."""

    address: str
    fields: dict[str, str]


class Relying:
    """Sends the requests of a client; every part can be changed, or left out with None."""

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
        """Give consent as the user; return the redirect to the client."""
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
    """Check that a response is this error of OAuth; return its body."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    told = answer.json()
    assert told["error"] == error, told
    assert set(told) == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"
    return told["error_description"]
