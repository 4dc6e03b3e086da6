"""Clients and users as callers of the Customer API. Their requests prove an access token, its key (DPoP), scope, role.

A token bound to a key is useless without a proof by that key for this request. `Idempotency-Key`
is optional for requests that change something.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from typing_extensions import override

from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.http.admission import AdmissionRequest
from billfold.http.api import Identity, Sender
from billfold.http.caller import Call
from billfold.http.operations import RATES_PER_MINUTE, Access, Operation
from billfold.http.raw_request import RawRequest, Requester, is_uuid
from billfold.http.responses import HttpResponse, ProblemWithHeaders
from billfold.http.uploads import fingerprint_of
from billfold.identity.partners.caller import Caller
from billfold.identity.users.rules import PERMISSIONS, Action
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.oauth import dpop, grants
from billfold.oauth.clients import list_client_keys
from billfold.oauth.rules import http_message_signatures
from billfold.oauth.rules.public_keys import ALGORITHMS
from billfold.oauth.types import AccessToken, OAuthError
from billfold.platform.errors import BillfoldError, InvalidInput, InvariantError, Refused
from billfold.platform.ids import command_id


class CustomerCaller(Call, frozen=True, kw_only=True):
    """One request with an access token of the Customer API: for one customer, usually by a member of its team."""

    access: AccessToken

    @property
    @override
    def origin(self) -> Origin:
        """The member who calls through the client, or the client itself."""
        access = self.access
        return Origin(
            kind="CLIENT" if access.user_id is None else "MEMBER",
            member_id=access.member_id,
            client_id=access.client_id,
            ip_address=self.address,
            user_agent=self.agent,
        )

    @override
    def may(self, scope: str) -> bool:
        """Tell whether scopes and role both include it."""
        return scope in self.access.scopes and scope in PERMISSIONS[self.access.role]

    @property
    def customer_id(self) -> UUID:
        """The only customer of the token."""
        return self.access.customer_id

    @property
    @override
    def only_customer_id(self) -> UUID:
        """The same as the customer."""
        return self.access.customer_id


AnyCaller = Caller | CustomerCaller
"""A request to either API."""


class RequestApproval(Protocol):
    """A service of both APIs: operations take it as the parameter `request_approval`."""

    async def __call__(
        self,
        member: CustomerCaller,
        bank: Bank,
        action: Action,
        action_name: str,
        resource: tuple[str, UUID | None],
        **change: object,
    ) -> HttpResponse | None:
        """Request a change and return the response for it, or None if no rule requires approval."""


KEY_HEADER = "idempotency-key"
_KEY_CHARS_MAX = 255
_UNLIMITED = 1_000_000
_SCHEMES = frozenset({"bearer", "dpop"})
_ALGORITHMS = " ".join(ALGORITHMS)


class AccessTokenAuthenticator:
    """Finds the client, user and customer of an access token, and checks the proof of its key.

    `base` is the public address of the server that receives the requests.
    """

    def __init__(self, bank: Bank, base: str) -> None:
        self._bank = bank
        self._base = base
        self._nonces = dpop.Nonces(bank.vault)

    async def identify(self, request: RawRequest, wall: datetime) -> Sender:
        """Return the customer of a token, once its key is proven; the proof is not used up. Raises like `verify`."""
        scheme, token, access = await self._look_up(request, wall)
        if access.jkt is None and scheme != "bearer":
            raise challenge("bearer", "invalid_token", "The access token is a bearer token.")
        if access.jkt is not None and scheme != "dpop":
            raise challenge("dpop", "invalid_token", "The access token is bound to a key.")
        proof = None if access.jkt is None else self._check_proof(request, access, token, now=wall)
        return Sender(access.customer_id, (access, proof))

    async def authenticate(
        self, sender: Sender, request: RawRequest, operation: Operation, *, access: Access, wall: datetime
    ) -> Identity:
        """Return the sender of a request. Raises `invalid-signature`, and `invalid-dpop-proof` for a used proof."""
        token = await self._prove(sender, request, wall)
        return await self.identity_of(token, request, operation, access=access)

    async def identity_of(
        self, token: AccessToken, request: RawRequest, operation: Operation, *, access: Access
    ) -> Identity:
        """Return the sender of a request and their proven access. Raises InvalidInput for a wrong key."""
        refusal = _missing_permission(access, token)
        # A caller without permission does not get the stored response of one who has it.
        key = None if refusal or not operation.changes else _key_in(request, token)
        caller = command_id(f"client:{token.client_id}", str(token.user_id))
        return Identity(
            admission=AdmissionRequest(
                caller=caller,
                key_owner=caller,
                per_minute=_UNLIMITED if access.group is None else RATES_PER_MINUTE[access.group],
                money_per_minute=_UNLIMITED,
                key=key,
                fingerprint=await fingerprint_of(request),
                claims=key is not None,
                moves_money=False,
                kind=access.group or "all",
            ),
            call_of=partial(_caller, token, await self._partner_of(token)),
            refusal=refusal,
        )

    async def verify(self, request: RawRequest, now: datetime) -> AccessToken:
        """Return the access that the token of a request grants.

        Raises `unauthorized` and `invalid-dpop-proof` with the challenge that RFC 6750 and RFC 9449
        require, `bad-request` when the token is in the query, `invalid-signature` when the request is
        signed (RFC 9421) and the signature is wrong, or is missing though required of its client.
        """
        return await self._prove(await self.identify(request, now), request, now)

    async def _prove(self, sender: Sender, request: RawRequest, now: datetime) -> AccessToken:
        access: AccessToken
        proof: dpop.Proof | None
        access, proof = sender.proven
        await self._check_signature(request, access, now)
        if proof is not None and not await dpop.consume_proof(self._bank.pool, proof.jkt, proof.jti, until=proof.until):
            raise challenge("dpop", "invalid_dpop_proof", "The proof was used before.")
        await grants.record_use(self._bank.pool, access, now)
        return access

    async def note_refused(self, call: Call, operation: Operation) -> None:
        """Record an attempt to change something without permission."""
        assert isinstance(call, CustomerCaller)
        scope = next(each.scope for each in operation.access if each.scope)
        entry = NewEntry(
            customer_id=call.customer_id,
            origin=call.origin,
            action="request.refused",
            resource_type="operation",
            resource_id=operation.name,
            outcome="FAILURE",
            details={"refused": "forbidden", "scope": scope},
        )
        async with self._bank.pool.acquire() as conn, conn.transaction():
            await record.record(conn, self._bank.vault, entry, now=call.wall)

    async def _look_up(self, request: RawRequest, now: datetime) -> tuple[str, str, AccessToken]:
        """Return scheme and token of a request, and the access of the token if it is proven."""
        scheme, token = _token_in(request)
        access = await grants.find_access_token(self._bank.pool, token, now)
        if access is None:
            raise challenge(scheme, "invalid_token", "The access token is unknown or has expired.")
        request.requester = Requester(access.customer_id, access.client_id, access.member_id)
        return scheme, token, access

    async def _partner_of(self, token: AccessToken) -> UUID:
        """Return the partner of the token's company, from memory. Raises `forbidden` for another's customer."""
        token.organization.require_company()
        entry = await self._bank.directory.find("customer", token.customer_id)
        if entry is None or entry.partner_id is None:
            raise InvariantError("the company of a token is not in the directory")
        return entry.partner_id

    def _check_proof(self, request: RawRequest, access: AccessToken, token: str, now: datetime) -> dpop.Proof:
        sent = request.header(b"dpop")
        if sent is None:
            raise challenge("dpop", "invalid_token", "The request lacks the proof (DPoP header).")
        try:
            proof = dpop.verify_proof(
                sent,
                method=request.method,
                url=self._base + request.path,
                now=now,
                nonces=self._nonces,
                requires_nonce=access.requires_nonce,
                token=token,
            )
        except OAuthError as error:
            fresh = (b"dpop-nonce", self._nonces.current(now).encode())
            headers = [fresh] if error.error == "use_dpop_nonce" else []
            raise challenge("dpop", error.error, error.description, *headers) from None
        if proof.jkt != access.jkt:
            raise challenge("dpop", "invalid_token", "The proof is by a key other than the token's.")
        return proof

    async def _check_signature(self, request: RawRequest, access: AccessToken, now: datetime) -> None:
        if not access.requires_signature and b"signature-input" not in request.headers:
            return
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        message = http_message_signatures.Message(
            method=request.method,
            url=self._base + request.path + query,
            body=request.body,
            header=lambda name: request.header(name.encode()),
        )
        keys = await list_client_keys(self._bank.pool, access.client_id, now)
        try:
            http_message_signatures.verify_message(message, keys, now)
        except http_message_signatures.InvalidSignature as why:
            raise ProblemWithHeaders("invalid-signature", str(why)) from None


def challenge(scheme: str, error: str | None, detail: str, *headers: tuple[bytes, bytes]) -> ProblemWithHeaders:
    """Return the 401 that names the requirement; `error` None when nothing was sent."""
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


def insufficient_scope(token: AccessToken, scope: str) -> ProblemWithHeaders:
    """Return the 403 that names the missing scope."""
    scheme = "Bearer" if token.jkt is None else "DPoP"
    value = f'{scheme} error="insufficient_scope", scope="{scope}"'
    return ProblemWithHeaders("forbidden", f"The token lacks the scope {scope}.", (b"www-authenticate", value.encode()))


def _token_in(request: RawRequest) -> tuple[str, str]:
    """Return scheme and token of the one header that may carry them."""
    if "access_token" in request.query_values:
        raise BillfoldError("bad-request", "Treat an access token in a URL as disclosed, and revoke it.")
    sent = request.header(b"authorization")
    if sent is None:
        raise challenge("dpop", None, "The request has no access token.")
    scheme, _, token = sent.partition(" ")
    token = token.strip()
    if scheme.lower() not in _SCHEMES or not token or "," in token:
        raise challenge("dpop", "invalid_token", "The header must read `Authorization: DPoP <token>`.")
    return scheme.lower(), token


def _caller(token: AccessToken, partner_id: UUID, fields: Mapping[str, Any]) -> CustomerCaller:
    name = f"client:{token.client_id}:{token.user_id or 'itself'}"
    return CustomerCaller(name=name, access=token, partner_id=partner_id, **fields)


def _missing_permission(access: Access, token: AccessToken) -> BillfoldError | None:
    """Return `forbidden` unless the token's scopes and its user's role both include the action."""
    if access.also in token.scopes & PERMISSIONS[token.role]:
        return None
    if access.scope not in token.scopes:
        return insufficient_scope(token, access.scope)
    if access.needs not in PERMISSIONS[token.role]:
        return Refused("forbidden", f"The role {token.role} does not include {access.needs}.")
    return None


def _key_in(request: RawRequest, token: AccessToken) -> UUID | None:
    """Return the key of a request that changes something; any short text is valid.

    A user of a client may act for several customers: the same text is a different key for each.
    """
    sent = request.header(KEY_HEADER.encode())
    return None if sent is None else key_of(token.customer_id, sent, ("header", KEY_HEADER))


def key_of(customer_id: UUID, sent: str, place: tuple[str, str]) -> UUID:
    """Return an idempotency key that was sent for a customer as it is kept. Raises InvalidInput at its place."""
    text = sent.strip('"')
    if not (text and text.isascii() and text.isprintable() and len(text) <= _KEY_CHARS_MAX):
        raise InvalidInput.at(*place, msg=f"must be 1 to {_KEY_CHARS_MAX} printable characters")
    return command_id(str(customer_id), text.lower() if is_uuid(text) else text)
