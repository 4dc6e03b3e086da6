"""Login with user name and password: slow on purpose, and locked after five failures."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec
from typing_extensions import override

from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.http.edge import is_bare, slug_of
from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import ProblemWithHeaders
from billfold.identity.partners import credentials, store
from billfold.identity.partners.rules import PartnerKey, PartnerUser, is_listed_address, require_allowed_address
from billfold.identity.users import lockout
from billfold.identity.users.passwords import PasswordGate
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.addresses import network_of
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import Refused
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES

LOGIN, LOCKED = "user.login", "user.locked"


async def record_login(
    bank: Bank, conn: Connection, user: PartnerUser | PartnerKey, request: RawRequest, *, now: datetime, **details: str
) -> None:
    """Record a sign-in, in the transaction that issues its token."""
    await record.record(conn, bank.vault, _entry(user, request, LOGIN, details=details), now=now)


def record_failed_login(
    bank: Bank, user: PartnerUser | PartnerKey, request: RawRequest, *, locks: bool = False, **details: str
) -> None:
    """Record a failed sign-in, and that it locks the user, after the response.

    The time of the response does not reveal whether the user name is known.
    """
    entries = [_entry(user, request, LOGIN, failed=True, details=details)]
    if locks:
        entries.append(_entry(user, request, LOCKED, failed=True, details={}))
    bank.background.start(_record(bank, entries))


async def _record(bank: Bank, entries: list[NewEntry]) -> None:
    async with bank.pool.acquire() as conn, conn.transaction():
        await record.record_all(conn, bank.vault, entries, now=wall_now())


def _entry(
    user: PartnerUser | PartnerKey,
    request: RawRequest,
    action: str,
    *,
    details: Mapping[str, str],
    failed: bool = False,
) -> NewEntry:
    return NewEntry(
        customer_id=user.own_customer_id,
        origin=Origin(
            kind="PARTNER",
            name=user.partner_slug,
            client_id=f"partner-user:{user.user_id}",
            ip_address=request.client,
            user_agent=request.header(b"user-agent"),
        ),
        action=action,
        resource_type="partner_user",
        resource_id=user.user_id,
        outcome="FAILURE" if failed else "SUCCESS",
        details={"username": user.username, **details},
    )


CredentialText = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The credentials of a login."""

    username: CredentialText
    password: CredentialText

    @override
    def __repr__(self) -> str:
        """Keep the password out of logs and traces."""
        return f"LoginRequest(username={self.username!r})"


class Login(msgspec.Struct, frozen=True):
    """An access token for one hour."""

    token: str
    expires: str


@post(
    "/api/v1/login/",
    PER_ADDRESS,
    tag="authentication",
    status=200,
    refuses=("invalid-credentials", "ip-not-allowed", "login-locked"),
)
async def log_in(data: LoginRequest, request: RawRequest, bank: Bank, gate: PasswordGate) -> Login:
    """Log in with user name and password. The token is valid for one hour."""
    pool, now = bank.pool, wall_now()
    user = await store.find_partner_user(pool, data.username)
    if user is not None and not is_host_of(user.partner_slug, request, bank):
        user = None
    password_hash, network = None if user is None else user.password_hash, network_of(request.client)
    partner = None if user is None else await store.find_partner(pool, user.partner_slug)
    # A listed network has its own counter per user from the first login on. Others share one and lock only each other.
    is_listed = partner is not None and is_listed_address(request.client, partner.allowed_networks)
    attempt = await _attempt(pool, gate, password_hash, data=data, network=network, is_listed=is_listed)
    if not attempt.is_right or user is None:
        SIGN_IN_FAILURES.add("partner password")
        if user is not None:
            record_failed_login(bank, user, request, locks=attempt.locks, wrong="password")
        raise ProblemWithHeaders(
            "invalid-credentials",
            "The user name or the password is wrong.",
            (b"www-authenticate", b'Bearer realm="billfold"'),
        )
    try:
        await require_allowed_caller(bank, user.partner_slug, request)
    except Refused:
        SIGN_IN_FAILURES.add("partner address")
        record_failed_login(bank, user, request, wrong="address")
        raise
    await credentials.keep_own_network(pool, data.username, network, now)
    async with pool.acquire() as conn, conn.transaction():
        token, expires = await credentials.issue_token(conn, partner_id=user.partner_id, user_id=user.user_id, now=now)
        await record_login(bank, conn, user, request, now=now, proved="password")
    return Login(token=token, expires=expires.isoformat())


class _Attempt(NamedTuple):
    is_right: bool
    locks: bool


async def _attempt(
    pool: Pool, gate: PasswordGate, password_hash: str | None, *, data: LoginRequest, network: str, is_listed: bool
) -> _Attempt:
    """Return whether a password is right, and whether it locks the user if not. Raises `login-locked`.

    The attempt is counted before the password is verified, and only when its turn has come: parallel guesses
    count as well, and many logins of one program do not lock it out. An unknown user name takes as long as a known one.
    """
    async with gate.limited():
        async with pool.acquire() as conn:
            is_own = is_listed or await credentials.is_own_network(conn, data.username, network, wall_now())
            subject = lockout.partner_subject(data.username, network if is_own else None)
            attempt = await lockout.begin_attempt(conn, subject, wall_now())
        if attempt.wait_seconds:
            retry_after = (b"retry-after", str(attempt.wait_seconds).encode())
            raise ProblemWithHeaders("login-locked", "Too many logins failed.", retry_after)
        is_right = await gate.verify_now(password_hash, data.password)
        if is_right and password_hash is not None:
            await lockout.clear_attempts(pool, subject)
    return _Attempt(is_right, attempt.locks)


def is_host_of(slug: str, request: RawRequest, bank: Bank) -> bool:
    """Return whether a request is sent to the host of a partner, or in a sandbox to a host without a name."""
    named = slug_of(request.host, bank.settings.domain)
    return named == slug or (named is None and not bank.settings.is_production and is_bare(request.host))


async def require_allowed_caller(bank: Bank, slug: str, request: RawRequest) -> None:
    """Raise Refused `ip-not-allowed` unless the partner accepts requests from this address."""
    partner = await store.find_partner(bank.pool, slug)
    if partner is not None:
        require_allowed_address(request.client, partner.allowed_networks)
