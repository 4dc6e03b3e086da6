"""Users and people of a partner as callers of operations, and how their requests prove who sends them.

A request of a user has a token, and a signature over its bytes. What tokens stand for is kept in memory for a second:
most requests need no look-up. A token revoked, a secret changed or a limit moved is in force everywhere within that
second. What a person may do at the bank's pages is said by their role in the partner's team.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.http.admission import AdmissionRequest
from billfold.http.api import Identity, Sender
from billfold.http.caller import Call
from billfold.http.edge import is_bare, slug_of
from billfold.http.operations import Access, Operation, Proof
from billfold.http.raw_request import KEY_HEADER, SIGNATURE_HEADER, RawRequest, Requester, is_uuid
from billfold.http.responses import ProblemWithHeaders, unauthorized
from billfold.http.uploads import fingerprint_of
from billfold.identity.partners.rules import Credential, PartnerPerson, refusal_of, require_allowed_address
from billfold.identity.partners.store import find_credential
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import monotonic
from billfold.platform.crypto import Vault, hash_token, is_unambiguous, verify_signature
from billfold.platform.database.connection import Pool
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.ids import command_id


class Caller(Call, frozen=True, kw_only=True):
    """One request of a partner: the user, and the customer it is for."""

    partner_slug: str
    user_id: UUID
    own_customer_id: UUID

    @property
    @override
    def origin(self) -> Origin:
        """The partner, and its user."""
        return Origin(
            kind="PARTNER", name=self.partner_slug, client_id=self.name, ip_address=self.address, user_agent=self.agent
        )

    @property
    @override
    def key_owner(self) -> str:
        """The partner, regardless of its user."""
        return f"partner:{self.partner_id}"


_PER_MINUTE = 600


async def identity_of_person(person: PartnerPerson, request: RawRequest, operation: Operation) -> Identity:
    """Return the sender of a request that the bank's pages make for a person of a partner.

    Requests, and the keys of forms, are counted for each person.
    """
    refusal = refusal_of(person.role, changes=operation.changes, moves_money=operation.moves_money)
    sent = None if refusal or not operation.changes else request.header(b"idempotency-key")
    owner = command_id(f"partner-member:{person.partner.partner_id}", str(person.user_id))
    key = None if sent is None else command_id(str(owner), sent)
    return Identity(
        admission=AdmissionRequest(
            caller=owner,
            key_owner=owner,
            per_minute=_PER_MINUTE,
            money_per_minute=0,
            key=key,
            fingerprint=await fingerprint_of(request),
            claims=key is not None,
            moves_money=False,
        ),
        call_of=partial(_person_as_caller, person),
        refusal=refusal,
    )


def _person_as_caller(person: PartnerPerson, fields: dict[str, Any]) -> Caller:
    return Caller(
        name=f"partner-member:{person.member_id}",
        partner_id=person.partner.partner_id,
        partner_slug=person.partner.slug,
        user_id=person.user_id,
        own_customer_id=person.partner.own_customer_id,
        **fields,
    )


MISMATCH = (
    "The signature does not match what was received. Sign the key, the path as sent without its "
    "query, and the exact bytes of the body, with nothing between them."
)
FRESH_SECONDS = 1.0
KEPT = 10_000


class SignedRequestAuthenticator:
    """Finds the partner user of a token, and checks the signature of a request."""

    def __init__(self, bank: Bank) -> None:
        self._domain = bank.settings.domain
        self._sandbox = not bank.settings.is_production
        self._credentials = CredentialCache(bank.pool, bank.vault)

    async def identify(self, request: RawRequest, wall: datetime) -> Sender:
        """Return the partner of a token. Raises `unauthorized`."""
        credential = await self._credential_of(request, wall)
        return Sender(credential.partner.partner_id, credential)

    async def authenticate(
        self, sender: Sender, request: RawRequest, operation: Operation, *, access: Access, wall: datetime
    ) -> Identity:
        """Return the sender of a request.

        Raises InvalidInput for an invalid key, `ambiguous-signature`, `invalid-signature`, `ip-not-allowed`.
        """
        del wall
        credential: Credential = sender.proven
        key = (
            _key_of(request)
            if access.proof is Proof.TOKEN_AND_KEY
            else check_signature(request, credential, required=access.proof is Proof.SIGNATURE)
        )
        return await self.identity_of(credential, request, operation, key=None if key is None else UUID(key))

    async def identity_of(
        self, credential: Credential, request: RawRequest, operation: Operation, *, key: UUID | None
    ) -> Identity:
        """Return the sender of a proven request. Raises `ip-not-allowed`."""
        if networks := credential.partner.allowed_networks:
            require_allowed_address(request.client, networks)
        return Identity(
            admission=AdmissionRequest(
                caller=credential.user_id,
                key_owner=credential.partner.partner_id,
                per_minute=credential.partner.rate_per_minute,
                money_per_minute=credential.partner.money_per_minute,
                key=key,
                fingerprint=await fingerprint_of(request),
                claims=operation.changes and key is not None,
                moves_money=operation.moves_money,
            ),
            call_of=partial(_user_as_caller, credential),
        )

    async def note_refused(self, call: Call, operation: Operation) -> None:
        """Record nothing: a partner may use every operation."""

    async def _credential_of(self, request: RawRequest, wall: datetime) -> Credential:
        sent = request.header(b"authorization")
        if sent is None:
            raise unauthorized("There is no access token in the request.", error=None)
        scheme, _, token = sent.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unauthorized("The header must read `Authorization: Bearer <token>`.")
        credential = await self._credentials.find(token.strip(), wall)
        if credential is None or not self._is_at_home(credential, request.host):
            raise unauthorized("The access token is unknown here, or has expired.")
        request.requester = Requester(credential.partner.partner_id, user_id=credential.user_id)
        return credential

    def _is_at_home(self, credential: Credential, host: str) -> bool:
        slug = slug_of(host, self._domain)
        if slug is None:
            return self._sandbox and is_bare(host)
        return slug == credential.partner.slug


def check_signature(request: RawRequest, credential: Credential, *, required: bool) -> str | None:
    """Return the idempotency key of a request whose signature is valid.

    If it is not required, the key may be missing (None), and the signature be omitted.
    """
    signature = request.header(SIGNATURE_HEADER.encode())
    if not required and signature is None and request.header(KEY_HEADER.encode()) is None:
        return None
    key = _key_of(request)
    if signature is None and not required:
        return key
    if not is_unambiguous(key, request.path, request.body):
        raise BillfoldError(
            "ambiguous-signature", "The path may hold only letters, digits and / _ . -, a body is JSON."
        )
    if signature is None:
        raise ProblemWithHeaders("invalid-signature", f"The header {SIGNATURE_HEADER} is missing.")
    secrets = credential.shared_secrets
    if not verify_signature(secrets, key, request.path, body=request.body, signature=signature):
        raise ProblemWithHeaders("invalid-signature", MISMATCH)
    return key


def _key_of(request: RawRequest) -> str:
    key = request.header(KEY_HEADER.encode())
    if key is None or not is_uuid(key):
        raise InvalidInput.at(
            "header",
            KEY_HEADER,
            msg="must be a UUID of 36 characters",
            kind="missing" if key is None else "uuid_parsing",
        )
    return key


def _user_as_caller(credential: Credential, fields: Mapping[str, Any]) -> Caller:
    partner = credential.partner
    return Caller(
        name=f"partner-user:{credential.user_id}",
        partner_id=partner.partner_id,
        partner_slug=partner.slug,
        user_id=credential.user_id,
        own_customer_id=partner.own_customer_id,
        **fields,
    )


class CredentialCache:
    """The tokens that one process has seen recently."""

    def __init__(self, pool: Pool, vault: Vault) -> None:
        self._pool = pool
        self._vault = vault
        self._known: OrderedDict[bytes, tuple[float, Credential]] = OrderedDict()
        self._lookups: dict[bytes, asyncio.Task[Credential | None]] = {}

    async def find(self, token: str, now: datetime) -> Credential | None:
        """Return the credential of a token at wall time `now`, or None: unknown or expired."""
        token_hash = hash_token(token)
        known = self._known.get(token_hash)
        credential: Credential | None
        if known is not None and monotonic() - known[0] < FRESH_SECONDS:
            credential = known[1]
        else:
            credential = await self._look_up(token_hash, now)
        return credential if credential is not None and credential.expires_at > now else None

    async def _look_up(self, token_hash: bytes, now: datetime) -> Credential | None:
        """Query the database, once for all concurrent callers."""
        task = self._lookups.get(token_hash)
        if task is None:
            task = asyncio.create_task(self._fetch(token_hash, now))
            self._lookups[token_hash] = task
            task.add_done_callback(lambda _: self._lookups.pop(token_hash, None))
        return await asyncio.shield(task)

    async def _fetch(self, token_hash: bytes, now: datetime) -> Credential | None:
        credential = await find_credential(self._pool, self._vault, token_hash, now=now)
        if credential is None:
            self._known.pop(token_hash, None)
        else:
            self._known[token_hash] = (monotonic(), credential)
            self._known.move_to_end(token_hash)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return credential
