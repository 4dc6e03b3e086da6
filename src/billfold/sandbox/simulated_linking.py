"""A linking provider that exists only in the sandbox: every account is derived from its id.

Public tokens begin with `public-sandbox-`. An account whose id has `manual` or `automatic` in it
waits for that verification until it is queried; one with `fail` fails; `savings` makes it a
savings account; `unknown` does not exist.
"""

import hashlib
from datetime import datetime, timedelta

from billfold.accounts.counterparties.ports import LinkedAccount, LinkedInstitution, LinkError, LinkStatus, LinkToken
from billfold.sandbox.magic_values import MagicValue

PUBLIC_TOKEN_PREFIX = "public-sandbox-"  # noqa: S105 - a name, not a secret
_UNKNOWN, _FAIL, _MANUAL, _AUTOMATIC, _SAVINGS = "unknown", "fail", "manual", "automatic", "savings"
MAGIC_VALUES = (
    MagicValue("counterparties", "public_token", f"begins with {PUBLIC_TOKEN_PREFIX}", "The link is exchanged."),
    MagicValue("counterparties", "accounts.id", f"contains {_UNKNOWN}", "The link has no such account."),
    MagicValue("counterparties", "accounts.id", f"contains {_MANUAL}", "The account waits for a manual verification."),
    MagicValue("counterparties", "accounts.id", f"contains {_AUTOMATIC}", "It waits for an automatic verification."),
    MagicValue("counterparties", "accounts.id", f"contains {_FAIL}", "The verification fails when it is queried."),
    MagicValue("counterparties", "accounts.id", f"contains {_SAVINGS}", "It is a savings account."),
)
_ACCESS_PREFIX = "access-sandbox-"
_ROUTING_NUMBER = "011000015"
_DIGITS = 10
_TOKEN_LIFETIME = timedelta(hours=4)
_UPDATE_TOKEN_LIFETIME = timedelta(minutes=30)


class SimulatedLinking:
    """Knows every account there could be."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    async def link_token(
        self,
        *,
        client_name: str,
        user: str,
        now: datetime,
        redirect_uri: str | None = None,
        android_package_name: str | None = None,
        access: str | None = None,
    ) -> LinkToken:
        """Return a token that is another for every user, client and instant."""
        parts = (client_name, user, now.isoformat(), redirect_uri, android_package_name, access)
        lifetime = _TOKEN_LIFETIME if access is None else _UPDATE_TOKEN_LIFETIME
        return LinkToken(token=f"link-sandbox-{self._derive(str(parts))}", expires_at=now + lifetime)

    async def exchange(self, public_token: str) -> str:
        """Return the same secret whenever it is called. Raises LinkError."""
        if not public_token.startswith(PUBLIC_TOKEN_PREFIX) or public_token == PUBLIC_TOKEN_PREFIX:
            raise LinkError("public_token", "is not a token of the linking provider")
        return _ACCESS_PREFIX + self._derive(public_token)

    async def accounts(self, access: str, account_ids: list[str]) -> LinkedInstitution:
        """Return an account for every id. Raises LinkError."""
        unknown = [each for each in account_ids if _UNKNOWN in each]
        if unknown:
            raise LinkError("accounts", f"{unknown[0]} is no account of this link")
        return LinkedInstitution(
            institution_name="First Sandbox Bank",
            accounts=tuple(self._account(access, each, _first_status(each)) for each in account_ids),
        )

    async def refresh(self, access: str, account_id: str) -> LinkedAccount:
        """Return an account with what became of its verification."""
        status: LinkStatus = "MANUALLY_VERIFIED" if _MANUAL in account_id else "AUTOMATICALLY_VERIFIED"
        return self._account(access, account_id, "VERIFICATION_FAILED" if _FAIL in account_id else status)

    def _account(self, access: str, account_id: str, status: LinkStatus) -> LinkedAccount:
        number = str(int(self._derive(access + account_id), 16) % 10**_DIGITS).zfill(_DIGITS)
        return LinkedAccount(
            account_id=account_id,
            routing_number=_ROUTING_NUMBER,
            account_number=number,
            account_type="SAVINGS" if _SAVINGS in account_id else "CHECKING",
            mask=number[-4:],
            status=status,
        )

    def _derive(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._seed[:64], digest_size=16).hexdigest()


def _first_status(account_id: str) -> LinkStatus:
    if _MANUAL in account_id:
        return "PENDING_MANUAL_VERIFICATION"
    if _AUTOMATIC in account_id or _FAIL in account_id:
        return "PENDING_AUTOMATIC_VERIFICATION"
    return "AUTOMATICALLY_VERIFIED"
