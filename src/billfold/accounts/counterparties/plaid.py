"""The linking provider Plaid, or another with the same API. Its vocabulary stays in this file.

Source: https://plaid.com/docs/api, version 2020-09-14: link/token/create, item/public_token/exchange, auth/get,
accounts/get, institutions/get_by_id, errors.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import httpx
import msgspec
import structlog

from billfold.accounts.counterparties.ports import LinkedAccount, LinkedInstitution, LinkError, LinkStatus, LinkToken
from billfold.accounts.counterparties.rules import identifiers
from billfold.platform.errors import Refused, Unavailable

log = structlog.get_logger(__name__)
_VERSION = "2020-09-14"
_DEADLINE = timedelta(seconds=20)
_TIMEOUT = httpx.Timeout(10.0, connect=5.0, pool=1.0)
_LIMITS = httpx.Limits(max_connections=20, max_keepalive_connections=5)
_ANSWER_BYTES_MAX = 2**20
_RETRY_AFTER_SECONDS = 5
_NAME_CHARS_MAX = 140
_READ_ATTEMPTS = 2
_COUNTRIES = ("US",)
_SUBTYPES: Final = {"checking": "CHECKING", "cash management": "CHECKING", "savings": "SAVINGS"}
_STATUSES: Final[Mapping[str | None, LinkStatus]] = {
    None: "AUTOMATICALLY_VERIFIED",  # its user signed in at the bank: no verification needed
    "": "AUTOMATICALLY_VERIFIED",
    "automatically_verified": "AUTOMATICALLY_VERIFIED",
    "manually_verified": "MANUALLY_VERIFIED",
    "database_matched": "AUTOMATICALLY_VERIFIED",
    "database_insights_pass": "AUTOMATICALLY_VERIFIED",
    "database_insights_pass_with_caution": "VERIFICATION_FAILED",
    "database_insights_fail": "VERIFICATION_FAILED",
    "unsent": "PENDING_MANUAL_VERIFICATION",
    "pending_manual_verification": "PENDING_MANUAL_VERIFICATION",
    "pending_automatic_verification": "PENDING_AUTOMATIC_VERIFICATION",
    "verification_expired": "VERIFICATION_EXPIRED",
    "verification_failed": "VERIFICATION_FAILED",
}
_VERIFIED: Final = frozenset({"AUTOMATICALLY_VERIFIED", "MANUALLY_VERIFIED"})
_NOT_READY = "PRODUCT_NOT_READY"
_NO_LINK: Final = frozenset({"INVALID_ACCESS_TOKEN", "ITEM_NOT_FOUND"})
_NO_ACH: Final = frozenset({"NO_AUTH_ACCOUNTS", "NO_ACCOUNTS", "PRODUCTS_NOT_SUPPORTED", "PRODUCT_UNAVAILABLE"})


class _Error(msgspec.Struct, frozen=True):
    error_type: str = ""
    error_code: str = ""
    request_id: str | None = None


class _Token(msgspec.Struct, frozen=True):
    link_token: str
    expiration: Annotated[datetime, msgspec.Meta(tz=True)]


class _Exchanged(msgspec.Struct, frozen=True):
    access_token: str


class _Account(msgspec.Struct, frozen=True):
    account_id: str
    type: str
    subtype: str | None = None
    mask: str | None = None
    verification_status: str | None = None


class _AchNumber(msgspec.Struct, frozen=True):
    account_id: str
    account: str
    routing: str


class _Numbers(msgspec.Struct, frozen=True):
    ach: tuple[_AchNumber, ...] = ()


class _Item(msgspec.Struct, frozen=True):
    institution_id: str | None = None
    institution_name: str | None = None


class _Institution(msgspec.Struct, frozen=True):
    name: str


class _FoundInstitution(msgspec.Struct, frozen=True):
    institution: _Institution


class _Accounts(msgspec.Struct, frozen=True):
    accounts: tuple[_Account, ...]
    item: _Item = _Item()
    numbers: _Numbers = _Numbers()


Answer = TypeVar("Answer")


class PlaidError(Exception):
    """Plaid refused a request; its message may repeat what was sent, so only its code is kept."""

    def __init__(self, error: _Error) -> None:
        super().__init__(error.error_code)
        self.code = error.error_code
        self.kind = error.error_type


class PlaidLinking:
    """Calls Plaid, or a compatible server at `url`. Requests and responses are never logged."""

    def __init__(self, *, url: str, client_id: str, secret: str, deadline: timedelta = _DEADLINE) -> None:
        self._deadline_seconds = deadline.total_seconds()
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={
                "PLAID-CLIENT-ID": client_id,
                "PLAID-SECRET": secret,
                "Plaid-Version": _VERSION,
                "accept-encoding": "identity",  # the limit below is for uncompressed data
            },
            timeout=_TIMEOUT,
            # Only a failed connection is tried again, before anything was sent.
            transport=httpx.AsyncHTTPTransport(retries=1, limits=_LIMITS, trust_env=False),
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def check(self) -> str:
        """Return the problem with the address or the credentials, empty if Plaid accepts both."""
        try:
            await self._call(
                "/institutions/get", {"count": 1, "offset": 0, "country_codes": _COUNTRIES}, dict[str, Any]
            )
        except PlaidError as error:
            return f"refuses the credentials: {error.code}"
        except Unavailable as error:
            return error.detail
        return ""

    async def link_token(
        self,
        *,
        client_name: str,
        user: str,
        now: datetime,  # noqa: ARG002 - Plaid has its own clock
        redirect_uri: str | None = None,
        android_package_name: str | None = None,
        access: str | None = None,
    ) -> LinkToken:
        """Return a token for Link; with `access` for its update mode. Raises LinkError."""
        body: dict[str, Any] = {
            "client_name": client_name,
            "language": "en",
            "country_codes": _COUNTRIES,
            "user": {"client_user_id": user},
        }
        if access is None:
            filters = {"depository": {"account_subtypes": list(_SUBTYPES)}}
            body |= {"products": ["auth"], "account_filters": filters}
        else:
            body["access_token"] = access
        back = {"redirect_uri": redirect_uri, "android_package_name": android_package_name}
        body |= {name: value for name, value in back.items() if value is not None}
        try:
            made = await self._call("/link/token/create", body, _Token)
        except PlaidError as error:
            if error.code == "INVALID_FIELD":
                sentence = "is refused by the linking provider: register it there first"
                raise LinkError("redirect_uri" if redirect_uri else "android_package_name", sentence) from None
            raise _refusal(error) from None
        return LinkToken(token=made.link_token, expires_at=made.expiration)

    async def exchange(self, public_token: str) -> str:
        """Return the access token of an Item. Raises LinkError."""
        try:
            made = await self._call("/item/public_token/exchange", {"public_token": public_token}, _Exchanged)
        except PlaidError as error:
            if error.code in {"INVALID_PUBLIC_TOKEN", "INVALID_FIELD"}:
                sentence = "is not a token of the linking provider, was used before, or has expired"
                raise LinkError("public_token", sentence) from None
            raise _refusal(error) from None
        return made.access_token

    async def accounts(self, access: str, account_ids: list[str]) -> LinkedInstitution:
        """Return accounts of an Item, in this order; one that awaits a deposit may lack numbers. Raises LinkError."""
        found, is_ready = await self._read_accounts(access, account_ids)
        by_id = {each.account_id: each for each in found.accounts}
        numbers = {each.account_id: each for each in found.numbers.ach}
        missing = [each for each in account_ids if each not in by_id]
        if missing:
            raise LinkError("accounts", f"{missing[0]} is not an account of this link")
        return LinkedInstitution(
            institution_name=await self._institution_name(found.item),
            accounts=tuple(_linked_account(by_id[each], numbers.get(each), is_ready=is_ready) for each in account_ids),
        )

    async def refresh(self, access: str, account_id: str) -> LinkedAccount:
        """Return the current state of an account. Raises LinkError if the Item no longer has it."""
        return (await self.accounts(access, [account_id])).accounts[0]

    async def _read_accounts(self, access: str, account_ids: list[str]) -> tuple[_Accounts, bool]:
        """Return the accounts, and whether Plaid has their numbers."""
        body = {"access_token": access, "options": {"account_ids": account_ids}}
        try:
            try:
                return await self._call("/auth/get", body, _Accounts, attempts=_READ_ATTEMPTS), True
            except PlaidError as error:
                if error.code != _NOT_READY:
                    raise
            return await self._call("/accounts/get", body, _Accounts, attempts=_READ_ATTEMPTS), False
        except PlaidError as error:
            if error.code == "INVALID_ACCOUNT_ID":
                raise LinkError("accounts", "names an account that is not of this link") from None
            if error.code in _NO_ACH:
                raise LinkError("accounts", "has no account that ACH reaches") from None
            raise _refusal(error) from None

    async def _institution_name(self, item: _Item) -> str | None:
        """Return the name of the bank if it is available; an account is linked without it too."""
        name = item.institution_name
        if name is None and item.institution_id is not None:
            body = {"institution_id": item.institution_id, "country_codes": _COUNTRIES}
            try:
                name = (await self._call("/institutions/get_by_id", body, _FoundInstitution)).institution.name
            except (PlaidError, Unavailable):
                return None
        return name if name and name.isprintable() and len(name) <= _NAME_CHARS_MAX else None

    async def _call(self, path: str, body: dict[str, Any], kind: type[Answer], *, attempts: int = 1) -> Answer:
        """Return the answer to a request. Raises PlaidError, Unavailable."""
        try:
            async with asyncio.timeout(self._deadline_seconds):
                status, content = await self._send(path, body, attempts)
            if status == HTTPStatus.OK:
                return msgspec.json.decode(content, type=kind)
            refused = msgspec.json.decode(content, type=_Error)
        except (TimeoutError, httpx.HTTPError, msgspec.DecodeError) as error:
            log.warning("linking_provider_failed", path=path, error=type(error).__name__)
            raise _unavailable() from None
        log.warning("linking_provider_refused", path=path, status=status, **msgspec.structs.asdict(refused))
        if not HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _unavailable()
        raise PlaidError(refused)

    async def _send(self, path: str, body: dict[str, Any], attempts: int) -> tuple[int, bytes]:
        """Send a request once or, if it only reads, retry until it is answered."""
        for _ in range(attempts - 1):
            try:
                status, content = await self._send_once(path, body)
            except httpx.TransportError as error:
                log.info("linking_provider_retried", path=path, error=type(error).__name__)
                continue
            if status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return status, content
        return await self._send_once(path, body)

    async def _send_once(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        async with self._http.stream("POST", path, json=body) as response:
            content = bytearray()
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > _ANSWER_BYTES_MAX:
                    raise httpx.DecodingError("the answer is too long")
            return response.status_code, bytes(content)


def _linked_account(account: _Account, number: _AchNumber | None, *, is_ready: bool) -> LinkedAccount:
    """Return an account in the port's terms. Raises LinkError for one that ACH cannot reach."""
    kind = _SUBTYPES.get(account.subtype or "") if account.type == "depository" else None
    if kind is None:
        raise LinkError("accounts", f"{account.account_id} is neither a checking nor a savings account")
    status = _link_status(account, is_ready=is_ready)
    if number is None and status in _VERIFIED:
        raise LinkError("accounts", f"{account.account_id} has no number that ACH reaches")
    if number is not None and (
        identifiers.routing_number_error(number.routing) or identifiers.us_account_number_error(number.account)
    ):
        raise LinkError("accounts", f"{account.account_id} has a number that ACH does not take")
    mask = account.mask or (number.account[-4:] if number else "")
    return LinkedAccount(
        account_id=account.account_id,
        routing_number=number.routing if number else None,
        account_number=number.account if number else None,
        account_type="SAVINGS" if kind == "SAVINGS" else "CHECKING",
        mask=mask if len(mask) <= 4 and mask.isalnum() else "",  # noqa: PLR2004 - two to four characters
        status=status,
    )


def _link_status(account: _Account, *, is_ready: bool) -> LinkStatus:
    """Return the progress of the verification. Unknown statuses and accounts without numbers are not verified."""
    status = _STATUSES.get(account.verification_status)
    if status is None:
        log.warning("linking_status_unknown", status=account.verification_status)
        return "PENDING_AUTOMATIC_VERIFICATION"
    return "PENDING_AUTOMATIC_VERIFICATION" if status in _VERIFIED and not is_ready else status


def _refusal(error: PlaidError) -> Refused | Unavailable:
    """Return the error that a caller sees for a refusal that no field of its request caused."""
    if error.code in _NO_LINK or error.kind == "ITEM_ERROR":
        return Refused("link-login-required", "The linking provider has no access to the account any more.")
    return _unavailable()


def _unavailable() -> Unavailable:
    return Unavailable("The linking provider does not answer.", retry_after_seconds=_RETRY_AFTER_SECONDS)
