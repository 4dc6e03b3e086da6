"""Logging in with a user name and a password: slow on purpose, and locked after five failures."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from typing_extensions import override

from billfold.access.partners import credentials
from billfold.access.partners import rules as partner_rules
from billfold.access.partners import store as partner_store
from billfold.access.partners.password_hashing import PasswordGate
from billfold.access.partners.types import PartnerUser
from billfold.http.limits.rate_limits import count_address
from billfold.http.operations import OPEN, post
from billfold.http.raw_request import RawRequest, is_bare, slug_of
from billfold.http.responses import ProblemWithHeaders
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

CredentialText = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who logs in."""

    username: CredentialText
    password: CredentialText

    @override
    def __repr__(self) -> str:
        """Leave the password out of logs and traces."""
        return f"LoginRequest(username={self.username!r})"


class Login(msgspec.Struct, frozen=True):
    """An access token for one hour."""

    token: str
    expires: str


class LoginService:
    """Where passwords are checked, two at a time."""

    __slots__ = ("_bank", "_gate")

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._gate = PasswordGate()

    async def log_in(self, body: LoginRequest, arrival: RawRequest, now: datetime) -> Login:
        """Return a token. Raises `invalid-credentials`, `login-locked`, `rate-limited`."""
        pool = self._bank.pool
        await count_address(pool, arrival.client, now)
        user = await self._find_user(body.username, arrival.host)
        # Done always, so that a known user name takes as long as an unknown one.
        unknown_user_lock = await credentials.unknown_user_lockout_seconds(pool, body.username, now)
        locked = unknown_user_lock if user is None else partner_rules.lockout_seconds(user.locked_until, now)
        if locked:
            raise ProblemWithHeaders("login-locked", "Too many logins failed.", (b"retry-after", str(locked).encode()))
        password_hash = None if user is None else user.password_hash
        if not await self._gate.verify(password_hash, body.password) or user is None:
            await self._record_failure(user, body.username, now)
            raise ProblemWithHeaders(
                "invalid-credentials",
                "The user name and the password do not belong together.",
                (b"www-authenticate", b'Bearer realm="billfold"'),
            )
        if user.failures:
            await credentials.reset_login_failures(pool, user.user_id)
        token, expires = await credentials.issue_token(pool, partner_id=user.partner_id, user_id=user.user_id, now=now)
        return Login(token=token, expires=expires.isoformat())

    async def _find_user(self, username: str, host: str) -> PartnerUser | None:
        """Return the user if it belongs to the partner of this host."""
        user = await partner_store.find_partner_user(self._bank.pool, username)
        slug = slug_of(host, self._bank.settings.domain)
        if slug is None:
            host_matches = not self._bank.settings.is_production and is_bare(host)
        else:
            host_matches = user is not None and user.partner_slug == slug
        return user if host_matches else None

    async def _record_failure(self, user: PartnerUser | None, username: str, now: datetime) -> None:
        if user is None:
            await credentials.record_unknown_user_failure(self._bank.pool, username, now)
        else:
            await credentials.record_login_failure(self._bank.pool, user.user_id, now)


@post("/api/v1/login/", OPEN, tag="authentication", status=200, refuses=("invalid-credentials", "login-locked"))
async def log_in(data: LoginRequest, request: RawRequest, login: LoginService) -> Login:
    """Log in with user name and password. The token is valid for one hour."""
    return await login.log_in(data, request, wall_now())
