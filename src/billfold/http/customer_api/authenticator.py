"""Requests of the Customer API prove who sends them: an access token, its key, scope and role.

`Idempotency-Key` may come with whatever changes something; nobody has to send it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from billfold.access.oauth import access_tokens, dpop
from billfold.access.oauth.types import AccessToken as TokenAccess
from billfold.access.users.rules import PERMISSIONS
from billfold.audit import record as audit_record
from billfold.audit.types import NewEntry
from billfold.http.api import Identity, fingerprint_of
from billfold.http.authentication.access_tokens import authenticate_access_token, resolve_token
from billfold.http.caller import Call
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.idempotency import AdmissionRequest
from billfold.http.operations import Access, Operation
from billfold.http.raw_request import RawRequest, is_uuid
from billfold.http.responses import ProblemWithHeaders
from billfold.ledger.bank import Bank
from billfold.platform.errors import BillfoldError, InvalidInput, InvariantError, Refused
from billfold.platform.ids import command_id

KEY_HEADER = "idempotency-key"
_KEY_CHARS_MAX = 255
_UNLIMITED = 1_000_000


class AccessTokenAuthenticator:
    """Finds the client, user and customer of an access token, and checks the proof of its key."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._find = partial(access_tokens.find_access_token, bank.pool)
        self._nonces = dpop.Nonces(bank.vault)

    async def check_token(self, request: RawRequest, wall: datetime) -> None:
        """Raise `unauthorized` when the token stands for nobody; its proof is checked later."""
        await resolve_token(request, find=self._find, now=wall)

    async def authenticate(self, request: RawRequest, operation: Operation, access: Access, wall: datetime) -> Identity:
        """Return who sends a request. Raises `unauthorized` and its kin."""
        bank = self._bank
        token = await authenticate_access_token(
            request, find=self._find, pool=bank.pool, nonces=self._nonces, base=bank.settings.customer_origin, now=wall
        )
        refusal = _refusal(access, token)
        # Who may not do it does not get the stored response of somebody who may.
        key = None if refusal or not operation.changes else _key_in(request, token)
        group = access.group
        return Identity(
            admission=AdmissionRequest(
                caller=command_id(f"client:{token.client_id}", str(token.user_id)),
                per_minute=_UNLIMITED if group is None else group.per_minute,
                money_per_minute=_UNLIMITED,
                key=key,
                fingerprint=fingerprint_of(request),
                claims=operation.changes,
                moves_money=False,
                kind="all" if group is None else group.name,
            ),
            call_of=partial(_member, token, await self._partner_of(token)),
            refusal=refusal,
        )

    async def note_refused(self, call: Call, operation: Operation) -> None:
        """Record that somebody tried to change what they may not."""
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
            await audit_record.record(conn, self._bank.vault, entry, now=call.wall)

    async def _partner_of(self, token: TokenAccess) -> UUID:
        """Return the partner whose customer it is, from memory."""
        entry = await self._bank.directory.find("customer", token.customer_id)
        if entry is None or entry.partner_id is None:
            raise InvariantError("a token stands for a customer who is no partner's")
        return entry.partner_id


def _member(token: TokenAccess, partner_id: UUID, fields: Mapping[str, Any]) -> CustomerCaller:
    name = f"client:{token.client_id}:{token.user_id or 'itself'}"
    return CustomerCaller(name=name, access=token, partner_id=partner_id, **fields)


def _refusal(access: Access, token: TokenAccess) -> BillfoldError | None:
    """Return `forbidden` unless the token's scopes and its user's role both include the action."""
    if access.scope not in token.scopes:
        scheme = "Bearer" if token.jkt is None else "DPoP"
        value = f'{scheme} error="insufficient_scope", scope="{access.scope}"'
        return ProblemWithHeaders(
            "forbidden", f"The token lacks the scope {access.scope}.", (b"www-authenticate", value.encode())
        )
    if access.needs not in PERMISSIONS[token.role]:
        return Refused("forbidden", f"The role {token.role} does not include {access.needs}.")
    return None


def _key_in(request: RawRequest, token: TokenAccess) -> UUID | None:
    """Return the key of a request that changes something; any short text will do.

    One user of one client may act for several customers: to each the same text is another key.
    """
    sent = request.header(KEY_HEADER.encode())
    if sent is None:
        return None
    text = sent.strip('"')
    if not (text and text.isascii() and text.isprintable() and len(text) <= _KEY_CHARS_MAX):
        raise InvalidInput.at("header", KEY_HEADER, msg=f"must be 1 to {_KEY_CHARS_MAX} printable characters")
    return command_id(str(token.customer_id), text.lower() if is_uuid(text) else text)
