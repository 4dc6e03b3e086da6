"""The door of the Customer API: a token, the proof of its key, its scopes and its user's role.

Nothing is counted of a request before its token holds. `Idempotency-Key` may come with whatever
changes something; nobody has to send it.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from uuid import UUID

from billfold.domain import audit, oauth
from billfold.domain.audit import Entry
from billfold.domain.oauth import Access
from billfold.domain.people import PERMISSIONS
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.access import know_token, prove_access
from billfold.interfaces.http.admission import Admittance, Request
from billfold.interfaces.http.answers import Turned
from billfold.interfaces.http.arrivals import Arrival, arrival_of, read_body, read_file
from billfold.interfaces.http.door import READS, Keeper, Visit, fingerprint_of
from billfold.interfaces.http.ids_in import is_uuid
from billfold.interfaces.http.operations import OPTIONS, Operation
from billfold.kit.clock import wall_now
from billfold.kit.errors import BillfoldError, Broken, InvalidInput, Refused
from billfold.kit.ids import command_id

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

KEY_HEADER = "idempotency-key"
_KEY_CHARS_MAX = 255
_UNLIMITED = 1_000_000


class Usher(Keeper):
    """What the doors of one process share."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank)
        self._nonces = oauth.dpop.Nonces(bank.vault)
        self._base = bank.settings.customer_origin

    async def access_of(self, arrival: Arrival, query: bytes, now: datetime) -> Access:
        """Return what the token of a request stands for. Raises `unauthorized` and its kin."""
        pool = self.bank.pool
        return await prove_access(
            arrival, query, find=partial(oauth.find_access, pool), pool=pool,
            nonces=self._nonces, base=self._base, now=now,
        )  # fmt: skip

    async def know(self, arrival: Arrival, query: bytes, now: datetime) -> None:
        """Raise `unauthorized` when the token stands for nobody; its proof is checked later."""
        await know_token(arrival, query, find=partial(oauth.find_access, self.bank.pool), now=now)

    async def partner_of(self, access: Access) -> UUID:
        """Return the partner whose customer it is, from memory."""
        entry = await self.bank.directory.find("customer", access.customer_id)
        if entry is None or entry.partner_id is None:
            raise Broken("a token stands for a customer who is no partner's")
        return entry.partner_id

    async def note_denied(self, member: Member, operation: Operation) -> None:
        """Record that somebody tried to change what he may not."""
        entry = Entry(
            customer_id=member.customer_id,
            origin=member.origin,
            action="request.refused",
            resource_type="operation",
            resource_id=operation.name,
            outcome="FAILURE",
            details={"refused": "forbidden", "scope": operation.scope},
        )
        async with self.bank.pool.acquire() as conn, conn.transaction():
            await audit.record(conn, self.bank.vault, entry, now=member.wall)


class Ushered(Protocol):
    """Whoever has an usher, for the time being."""

    usher: Usher


class MemberDoor:
    """The ASGI layer between the router and the operations."""

    def __init__(self, app: ASGIApp, tenant: Ushered) -> None:
        self._app = app
        self._tenant = tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or raise why not."""
        handler: Any = scope["route_handler"]
        usher = self._tenant.usher
        operation = usher.operations.get(handler, OPTIONS)
        arrival, query = arrival_of(scope), scope["query_string"]
        if operation.takes_file:
            # Whoever sends a file is known before a byte of it is read.
            await usher.know(arrival, query, wall_now())
            async with usher.files:
                arrival.body = await read_file(cast("HTTPScope", scope), receive, arrival)
                await self._serve(operation, arrival, scope, receive, send)
            return
        arrival.body = await read_body(cast("HTTPScope", scope), receive)
        if operation.door == "open":
            operation.read(arrival, query)
            await self._app(scope, receive, send)
            return
        await self._serve(operation, arrival, scope, receive, send)

    async def _serve(
        self, operation: Operation, arrival: Arrival, scope: Scope, receive: Receive, send: Send
    ) -> None:
        usher, query, wall = self._tenant.usher, scope["query_string"], wall_now()
        access = await usher.access_of(arrival, query, wall)
        refusal = _refusal(operation, access)
        # Who may not do it is not told either what was answered to whoever might.
        key = None if refusal else _key_in(arrival, access)
        request = _request(arrival, query, operation, access, key)
        visit = Visit(usher, operation, arrival, request, wall)
        whom = _Whom(access, await usher.partner_of(access), refusal)
        await visit.run(self._app, scope, receive, send, caller=whom)
        if whom.denied is not None and arrival.method not in READS:
            await usher.note_denied(whom.denied, operation)


class _Whom:
    """Makes the member of a request that was let in, or refuses him the deed."""

    def __init__(self, access: Access, partner_id: UUID, refusal: BillfoldError | None) -> None:
        self.denied: Member | None = None
        self._access = access
        self._partner_id = partner_id
        self._refusal = refusal

    def __call__(self, visit: Visit, admittance: Admittance) -> Member:
        """Return who asks. Raises `forbidden`, and knows then whom it was said to."""
        access = self._access
        member = Member(
            name=f"client:{access.client_id}:{access.user_id or 'itself'}",
            access=access,
            partner_id=self._partner_id,
            **visit.call_fields(admittance),
        )
        if self._refusal is not None:
            self.denied = member
            raise self._refusal
        return member


def _refusal(operation: Operation, access: Access) -> BillfoldError | None:
    """Return `forbidden` unless the token's scopes and its user's role both include the deed."""
    if operation.scope not in access.scopes:
        scheme = "Bearer" if access.jkt is None else "DPoP"
        value = f'{scheme} error="insufficient_scope", scope="{operation.scope}"'
        return Turned(
            "forbidden",
            f"The token lacks the scope {operation.scope}.",
            (b"www-authenticate", value.encode()),
        )
    if operation.needs not in PERMISSIONS[access.role]:
        return Refused("forbidden", f"The role {access.role} does not include {operation.needs}.")
    return None


def _request(
    arrival: Arrival, query: bytes, operation: Operation, access: Access, key: UUID | None
) -> Request:
    group = operation.group
    return Request(
        caller=command_id(f"client:{access.client_id}", str(access.user_id)),
        per_minute=_UNLIMITED if group is None else group.per_minute,
        money_per_minute=_UNLIMITED,
        key=key,
        fingerprint=fingerprint_of(arrival, query),
        claims=arrival.method not in READS,
        moves_money=False,
        kind="all" if group is None else group.name,
    )


def _key_in(arrival: Arrival, access: Access) -> UUID | None:
    """Return the key of a request that changes something; any short text will do.

    One user of one client may act for several customers: to each the same text is another key.
    """
    sent = arrival.header(KEY_HEADER.encode())
    if sent is None or arrival.method in READS:
        return None
    text = sent.strip('"')
    if not (text and text.isascii() and text.isprintable() and len(text) <= _KEY_CHARS_MAX):
        raise InvalidInput.at(
            "header", KEY_HEADER, msg=f"must be 1 to {_KEY_CHARS_MAX} printable characters"
        )
    return command_id(str(access.customer_id), text.lower() if is_uuid(text) else text)
