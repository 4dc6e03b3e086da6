"""Who holds the access token of a request to the Customer API, and whether he has proven his key.

A token bound to a key is worth nothing without a proof by that key, made for this request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from billfold.domain.oauth import Access, OAuthError, client_keys, dpop, message_signatures
from billfold.domain.oauth.keys import ALGORITHMS
from billfold.interfaces.http.answers import Turned
from billfold.interfaces.http.arrivals import Arrival
from billfold.kit.errors import BillfoldError

if TYPE_CHECKING:
    from billfold.kit.db import Pool

Find = Callable[[str, datetime], Awaitable[Access | None]]
_SCHEMES = frozenset({"bearer", "dpop"})
_ALGORITHMS = " ".join(ALGORITHMS)


async def prove_access(
    arrival: Arrival,
    query: bytes,
    *,
    find: Find,
    pool: Pool,
    nonces: dpop.Nonces,
    base: str,
    now: datetime,
) -> Access:
    """Return what the token of a request stands for. `base` is our public address.

    Raises `unauthorized` and `invalid-dpop-proof` with the challenge that RFC 6750 and RFC 9449
    ask for, `bad-request` when the token is in the query, `invalid-signature` when the request is
    signed (RFC 9421) and the signature does not hold, or is not where its client has to sign.
    """
    scheme, token, access = await know_token(arrival, query, find=find, now=now)
    if access.jkt is None and scheme != "bearer":
        raise challenge("bearer", "invalid_token", "The access token is a bearer's.")
    if access.jkt is not None and scheme != "dpop":
        raise challenge("dpop", "invalid_token", "The access token is bound to a key.")
    if access.requires_signature or b"signature-input" in arrival.headers:
        await _check_signature(arrival, query, access, pool=pool, base=base, now=now)
    if access.jkt is not None:
        await _prove(arrival, access, token, pool=pool, nonces=nonces, base=base, now=now)
    return access


async def know_token(
    arrival: Arrival, query: bytes, *, find: Find, now: datetime
) -> tuple[str, str, Access]:
    """Return scheme and token of a request, and what the token stands for if it is proven."""
    scheme, token = _token_in(arrival, query)
    access = await find(token, now)
    if access is None:
        raise challenge(scheme, "invalid_token", "The access token is unknown or has expired.")
    return scheme, token, access


def challenge(scheme: str, error: str | None, detail: str, *headers: tuple[bytes, bytes]) -> Turned:
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
    return Turned(code, detail, (b"www-authenticate", value), *headers)


def _token_in(arrival: Arrival, query: bytes) -> tuple[str, str]:
    """Return scheme and token of the one header that may carry them."""
    names = {unquote_plus(each.partition("=")[0]) for each in query.decode("latin-1").split("&")}
    if "access_token" in names:
        raise BillfoldError(
            "bad-request", "An access token in the address counts as seen by others; revoke it."
        )
    sent = arrival.header(b"authorization")
    if sent is None:
        raise challenge("dpop", None, "There is no access token in the request.")
    scheme, _, token = sent.partition(" ")
    token = token.strip()
    if scheme.lower() not in _SCHEMES or not token or "," in token:
        raise challenge(
            "dpop", "invalid_token", "The header must read `Authorization: DPoP <token>`."
        )
    return scheme.lower(), token


async def _prove(
    arrival: Arrival,
    access: Access,
    token: str,
    *,
    pool: Pool,
    nonces: dpop.Nonces,
    base: str,
    now: datetime,
) -> None:
    sent = arrival.header(b"dpop")
    if sent is None:
        raise challenge("dpop", "invalid_token", "The request lacks the proof (DPoP header).")
    try:
        proof = dpop.check(
            sent,
            method=arrival.method,
            url=base + arrival.path,
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
    if not await dpop.burn_proof(pool, proof.jkt, proof.jti, proof.until):
        raise challenge("dpop", "invalid_dpop_proof", "The proof was used before.")


async def _check_signature(
    arrival: Arrival, query: bytes, access: Access, *, pool: Pool, base: str, now: datetime
) -> None:
    address = base + arrival.path + (f"?{query.decode('latin-1')}" if query else "")
    message = message_signatures.Message(
        method=arrival.method,
        url=address,
        body=arrival.body,
        header=lambda name: arrival.header(name.encode()),
    )
    keys = await client_keys(pool, access.client_id, now)
    try:
        message_signatures.check_message(message, keys, now)
    except message_signatures.NotSigned as why:
        raise Turned("invalid-signature", str(why)) from None
