"""Who holds the access token of a request to the Customer API, and whether he has proven his key.

A token bound to a key is worth nothing without a proof by that key, made for this request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from billfold.access.oauth import dpop
from billfold.access.oauth.clients import list_client_keys
from billfold.access.oauth.errors import OAuthError
from billfold.access.oauth.rules import http_message_signatures as message_signatures
from billfold.access.oauth.rules.public_keys import ALGORITHMS
from billfold.access.oauth.types import AccessToken
from billfold.http.raw_request import RawRequest
from billfold.http.responses import ProblemWithHeaders
from billfold.platform.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.platform.database.pool import Pool

Find = Callable[[str, datetime], Awaitable[AccessToken | None]]
_SCHEMES = frozenset({"bearer", "dpop"})
_ALGORITHMS = " ".join(ALGORITHMS)


async def authenticate_access_token(
    request: RawRequest, *, find: Find, pool: Pool, nonces: dpop.Nonces, base: str, now: datetime
) -> AccessToken:
    """Return what the token of a request stands for. `base` is our public address.

    Raises `unauthorized` and `invalid-dpop-proof` with the challenge that RFC 6750 and RFC 9449
    ask for, `bad-request` when the token is in the query, `invalid-signature` when the request is
    signed (RFC 9421) and the signature does not hold, or is not where its client has to sign.
    """
    scheme, token, access = await resolve_token(request, find=find, now=now)
    if access.jkt is None and scheme != "bearer":
        raise challenge("bearer", "invalid_token", "The access token is a bearer's.")
    if access.jkt is not None and scheme != "dpop":
        raise challenge("dpop", "invalid_token", "The access token is bound to a key.")
    if access.requires_signature or b"signature-input" in request.headers:
        await _check_signature(request, access, pool=pool, base=base, now=now)
    if access.jkt is not None:
        await _prove(request, access, token, pool=pool, nonces=nonces, base=base, now=now)
    return access


async def resolve_token(request: RawRequest, *, find: Find, now: datetime) -> tuple[str, str, AccessToken]:
    """Return scheme and token of a request, and what the token stands for if it is proven."""
    scheme, token = _token_in(request)
    access = await find(token, now)
    if access is None:
        raise challenge(scheme, "invalid_token", "The access token is unknown or has expired.")
    return scheme, token, access


def challenge(scheme: str, error: str | None, detail: str, *headers: tuple[bytes, bytes]) -> ProblemWithHeaders:
    """Return the 401 that says how to do better; `error` None when nothing was sent."""
    name = "DPoP" if scheme == "dpop" else "Bearer"
    parts = ['realm="billfold"']
    if error is not None:
        parts.append(f'error="{error}"')
    if name == "DPoP":
        parts.append(f'algs="{_ALGORITHMS}"')
    value = f"{name} {', '.join(parts)}".encode()
    proof_failed = error in {"invalid_dpop_proof", "use_dpop_nonce"}
    code = "invalid-dpop-proof" if proof_failed else "unauthorized"
    return ProblemWithHeaders(code, detail, (b"www-authenticate", value), *headers)


def _token_in(request: RawRequest) -> tuple[str, str]:
    """Return scheme and token of the one header that may carry them."""
    names = {unquote_plus(each.partition("=")[0]) for each in request.query.decode("latin-1").split("&")}
    if "access_token" in names:
        raise BillfoldError("bad-request", "An access token in the address counts as seen by others; revoke it.")
    sent = request.header(b"authorization")
    if sent is None:
        raise challenge("dpop", None, "There is no access token in the request.")
    scheme, _, token = sent.partition(" ")
    token = token.strip()
    if scheme.lower() not in _SCHEMES or not token or "," in token:
        raise challenge("dpop", "invalid_token", "The header must read `Authorization: DPoP <token>`.")
    return scheme.lower(), token


async def _prove(
    request: RawRequest, access: AccessToken, token: str, *, pool: Pool, nonces: dpop.Nonces, base: str, now: datetime
) -> None:
    sent = request.header(b"dpop")
    if sent is None:
        raise challenge("dpop", "invalid_token", "The request lacks the proof (DPoP header).")
    try:
        proof = dpop.verify_proof(
            sent,
            method=request.method,
            url=base + request.path,
            now=now,
            nonces=nonces,
            requires_nonce=access.requires_nonce,
            token=token,
        )
    except OAuthError as error:
        fresh = (b"dpop-nonce", nonces.current(now).encode())
        headers = [fresh] if error.error == "use_dpop_nonce" else []
        raise challenge("dpop", error.error, error.description, *headers) from None
    if proof.jkt != access.jkt:
        raise challenge("dpop", "invalid_token", "The proof is by another key than the token's.")
    if not await dpop.consume_proof(pool, proof.jkt, proof.jti, until=proof.until):
        raise challenge("dpop", "invalid_dpop_proof", "The proof was used before.")


async def _check_signature(request: RawRequest, access: AccessToken, *, pool: Pool, base: str, now: datetime) -> None:
    address = base + request.path + (f"?{request.query.decode('latin-1')}" if request.query else "")
    message = message_signatures.Message(
        method=request.method, url=address, body=request.body, header=lambda name: request.header(name.encode())
    )
    keys = await list_client_keys(pool, access.client_id, now)
    try:
        message_signatures.verify_message(message, keys, now)
    except message_signatures.InvalidSignature as why:
        raise ProblemWithHeaders("invalid-signature", str(why)) from None
