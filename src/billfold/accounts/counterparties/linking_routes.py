"""Accounts that users link through a linking provider by signing in at their own bank; and counterparties of v1."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store
from billfold.accounts.counterparties.commands import AddCounterparty, SettleLink
from billfold.accounts.counterparties.ports import LinkedAccount, LinkError, LinkingProvider
from billfold.accounts.counterparties.requests import add_counterparty, read_counterparty
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.counterparties.store import open_counterparties, seal_details
from billfold.accounts.counterparties.types import CounterpartyRow, format_name
from billfold.accounts.customers.schemas import parse_person_name
from billfold.accounts.pockets.routes import V1_READS
from billfold.data_keys.keys import LINKING_ACCESS, DataKey, DataKeys
from billfold.http.operations import get, post
from billfold.http.schemas import one_of
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.platform.crypto import associated_data, hash_token
from billfold.platform.database.paging import list_as_of
from billfold.platform.errors import InvalidInput, NotFound, Refused

_V1_VERIFICATION_TYPES = {
    "micro_deposits": "MICRO_DEPOSITS",
    "linking_provider": "LINKING_PROVIDER",
    "pre_verified": "PRE_VERIFIED",
    "name_match": "PRE_VERIFIED",
    "incoming_wire": "INCOMING_WIRE",
    "supporting_documents": "SUPPORTING_DOCUMENTS",
}
_V1_STATUSES, _V1_USABLE = {"PENDING": "IN_PROGRESS", "UNLINKED": "FAILED"}, "VERIFIED"
V1_COUNTERPARTY_TYPES = ("ach", "wire")
"""The types that v1 has."""


class MicroDeposits(msgspec.Struct, kw_only=True):
    """The number of wrong attempts."""

    verification_failure_count: int


class LinkingProviderState(msgspec.Struct, kw_only=True):
    """The linking provider's data about an account."""

    mask: str
    verification_status: str


class OlderAccount(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The account of a counterparty, v1."""

    time_created: datetime
    verification_type: Annotated[str, one_of(*dict.fromkeys(_V1_VERIFICATION_TYPES.values()))]
    status: Annotated[str, one_of(*_V1_STATUSES.values(), _V1_USABLE)]
    account_number: str | None
    routing_number: str | None
    name_on_account: str
    account_type: Annotated[str, one_of("CHECKING", "SAVINGS")] | None
    institution_name: str | None
    linking_provider: LinkingProviderState | None = None
    micro_deposits: MicroDeposits | None = None


class OlderCounterparty(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A counterparty, v1: its account is in the field named after its type."""

    id: UUID
    type: Annotated[str, one_of(*map(str.upper, V1_COUNTERPARTY_TYPES))]
    ach: OlderAccount | None = None
    wire: OlderAccount | None = None


class OlderCounterparties(msgspec.Struct, kw_only=True):
    """All counterparties of a customer that v1 can represent, newest first."""

    count: int
    counterparties: list[OlderCounterparty]
    object_type: Literal["List"] = "List"


class LinkTokenRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The target to which the provider's pages return: an address, or an Android package."""

    client_name: Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
    redirect_uri: (
        Annotated[str, msgspec.Meta(pattern=r"^https://[^\s]+\Z", max_length=2000, description="an https address")]
        | None
    ) = None
    android_package_name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None
    counterparty_id: UUID | None = None


class LinkTokenAnswer(msgspec.Struct, kw_only=True):
    """A token for the provider's pages, and its expiry."""

    link_token: str
    expiration: datetime


class ChosenAccount(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An account chosen on the provider's pages."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    name: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    mask: Annotated[str, msgspec.Meta(max_length=4)] | None = None


class LinkRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The result of the provider's pages."""

    public_token: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    accounts: Annotated[list[ChosenAccount], msgspec.Meta(min_length=1, max_length=20)]
    institution_id: Annotated[str, msgspec.Meta(max_length=100)] | None = None


class LinkedCounterparties(msgspec.Struct, kw_only=True):
    """The counterparties created from the chosen accounts, in order."""

    items: list[Counterparty]


def has_v1_form(row: CounterpartyRow) -> bool:
    """Return whether v1 can represent a counterparty: its type, and how it was verified."""
    verification = msgspec.json.decode(row.verification)
    return row.type in V1_COUNTERPARTY_TYPES and verification["type"] in _V1_VERIFICATION_TYPES


def render_v1_counterparty(row: CounterpartyRow) -> OlderCounterparty:
    """Return a counterparty in its v1 form."""
    details, stored = msgspec.json.decode(row.details), msgspec.json.decode(row.verification)
    account = OlderAccount(
        time_created=row.created_at,
        verification_type=_V1_VERIFICATION_TYPES[stored["type"]],
        status=_status(row.status),
        account_number=row.account_number,
        routing_number=details.get("routing_number"),
        name_on_account=format_name(msgspec.json.decode(row.counterparty_name)),
        account_type=details.get("account_type"),
        institution_name=details.get("institution_name"),
        linking_provider=_render_link(stored.get("account")),
        micro_deposits=(
            MicroDeposits(verification_failure_count=stored["failures"]) if stored["type"] == "micro_deposits" else None
        ),
    )
    if row.type == "ach":
        return OlderCounterparty(id=row.counterparty_id, type="ACH", ach=account)
    return OlderCounterparty(id=row.counterparty_id, type="WIRE", wire=account)


def _render_link(account: Mapping[str, Any] | None) -> LinkingProviderState | None:
    if account is None:
        return None
    return LinkingProviderState(mask=account["mask"], verification_status=account["status"])


def _status(status: str) -> str:
    return _V1_STATUSES.get(status, _V1_USABLE)


_COUNTERPARTIES_MAX = 1000
_LINKS = "account_links"
"""Usage counted per request to the linking provider: tokens, accounts, their status."""
_LINK_REFUSES = ("linking-provider-not-configured", "link-login-required", "usage-limit-reached")


@post(
    "/api/v1/customers/{customer_id}/counterparties/linking-provider/link-token/",
    tag="counterparties",
    status=200,
    refuses=(*_LINK_REFUSES, "counterparty-type-mismatch"),
)
async def create_link_token(caller: Caller, bank: Bank, customer_id: UUID, data: LinkTokenRequest) -> LinkTokenAnswer:
    """Create link token.

    The token opens the linking provider's pages once.
    """
    owner = await caller.owner(bank, customer_id)
    if (data.redirect_uri is None) == (data.android_package_name is None):
        raise InvalidInput.at("body", "redirect_uri", msg="exactly one of redirect_uri and android_package_name")
    provider, access = _provider(bank), None
    if data.counterparty_id is not None:
        access, _ = await _link_of(bank, owner, data.counterparty_id)
    await limit_usage(bank, _LINKS, owner)
    with _naming_fields():
        token = await provider.link_token(
            client_name=data.client_name,
            user=str(owner),
            now=caller.wall,
            redirect_uri=data.redirect_uri,
            android_package_name=data.android_package_name,
            access=access,
        )
    return LinkTokenAnswer(link_token=token.token, expiration=token.expires_at)


@post(
    "/api/v1/customers/{customer_id}/counterparties/linking-provider/",
    tag="counterparties",
    refuses=(*_LINK_REFUSES, "customer-not-open"),
)
async def link_accounts(caller: Caller, bank: Bank, customer_id: UUID, data: LinkRequest) -> LinkedCounterparties:
    """Link accounts.

    Creates counterparties from the accounts chosen on the linking provider's pages.
    """
    owner = await caller.owner(bank, customer_id)
    chosen = [each.id for each in data.accounts]
    if len(set(chosen)) != len(chosen):
        raise InvalidInput.at("body", "accounts", msg="name an account twice")
    customer = await find_customer(bank.pool, owner)
    if customer is None:
        raise NotFound("There is no such customer.")
    provider, exchange = _provider(bank), UUID(bytes=hash_token(data.public_token)[:16])
    await limit_usage(bank, _LINKS, owner, more=len(chosen))
    with _naming_fields():
        access = await _exchange(caller, bank, owner, token=(exchange, data.public_token))
        linked = await provider.accounts(access, chosen)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    created = []
    for step, (requested, account) in enumerate(zip(data.accounts, linked.accounts, strict=True)):
        details = _known_detail_names(institution_name=linked.institution_name, **_numbers(account))
        command = AddCounterparty(
            **caller.command_fields(owner, step=step),
            type="ach",
            counterparty_name=_counterparty_name(customer),
            display_name=requested.name or None,
            details=seal_details(data_key, "ach", details),
            verification="linking_provider",
            linked=_stored_link(data_key, access, account),
        )
        created.append(await add_counterparty(bank, command))
    await store.forget_exchanged(bank.pool, owner, exchange)
    return LinkedCounterparties(items=[await read_counterparty(bank, owner, each) for each in created])


@post(
    "/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/linking-provider/verify/",
    tag="counterparties",
    status=204,
    refuses=(*_LINK_REFUSES, "counterparty-type-mismatch"),
)
async def verify_linked_account(caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID) -> None:
    """Refresh linked account.

    Fetches the verification status of a linked account from the linking provider.
    """
    owner = await caller.owner(bank, customer_id)
    access, account_id = await _link_of(bank, owner, counterparty_id)
    provider = _provider(bank)
    await limit_usage(bank, _LINKS, owner)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    status, numbers = "VERIFICATION_FAILED", None
    with suppress(LinkError):  # the account no longer exists at its bank
        account = await provider.refresh(access, account_id)
        status, numbers = account.status, None
        if account.account_number is not None:
            numbers = seal_details(data_key, "ach", _numbers(account))
    await bank.engine.submit(
        SettleLink(**caller.command_fields(owner), counterparty_id=counterparty_id, link_status=status, numbers=numbers)
    )


@get("/api/v1/customers/{customer_id}/counterparties/", tag="counterparties", deprecated=V1_READS, as_of=True)
async def list_v1_counterparties(caller: Caller, bank: Bank, customer_id: UUID) -> OlderCounterparties:
    """List counterparties (v1).

    Returns accounts that can be reached by ACH and domestic wires, newest first. Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    listed, then = list_as_of(store.COUNTERPARTIES, store.COUNTERPARTIES_THEN, caller.as_of)
    rows = await listed.rows(
        bank.pool, owner, list(V1_COUNTERPARTY_TYPES), None, None, *then, limit=_COUNTERPARTIES_MAX
    )
    opened = await open_counterparties(bank, [row for row in rows if has_v1_form(row)])
    shown = [render_v1_counterparty(row) for row in opened]
    return OlderCounterparties(count=len(shown), counterparties=shown)


@get(
    "/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/",
    tag="counterparties",
    deprecated=V1_READS,
    as_of=True,
)
async def get_v1_counterparty(
    caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID
) -> OlderCounterparty:
    """Get counterparty (v1).

    Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    row = await store.get_counterparty(bank.pool, owner, counterparty_id, as_of=caller.as_of)
    if not has_v1_form(row):
        raise NotFound("There is no such counterparty.")
    return render_v1_counterparty((await open_counterparties(bank, [row]))[0])


def _provider(bank: Bank) -> LinkingProvider:
    provider = bank.ports.get(LinkingProvider)
    if provider is None:
        raise Refused("linking-provider-not-configured", "The bank has no linking provider.")
    return provider


async def _exchange(caller: Caller, bank: Bank, owner: UUID, *, token: tuple[UUID, str]) -> str:
    """Return the secret of the link, which is stored before use: its token is valid once. Raises LinkError."""
    exchange_id, public_token = token
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    sealed = await store.find_exchanged(bank.pool, owner, exchange_id)
    if sealed is not None:
        return LINKING_ACCESS.open(data_key, exchange_id, sealed)
    access = await _provider(bank).exchange(public_token)
    sealed = LINKING_ACCESS.seal(data_key, exchange_id, access)
    await store.keep_exchanged(bank.pool, owner, exchange_id, access=sealed, wall=caller.wall)
    return access


@contextmanager
def _naming_fields() -> Iterator[None]:
    """Report a refusal by the provider at the field of the body that caused it."""
    try:
        yield
    except LinkError as refused:
        raise InvalidInput.at("body", refused.field, msg=str(refused)) from None


async def _link_of(bank: Bank, owner: UUID, counterparty_id: UUID) -> tuple[str, str]:
    """Return the secret of a link and the provider's account id."""
    row = await store.get_counterparty(bank.pool, owner, counterparty_id)
    account = msgspec.json.decode(row.verification).get("account")
    if account is None:
        raise Refused("counterparty-type-mismatch", "The counterparty was not linked through the provider.")
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    return data_key.open_text(account["access"], _place(owner, account["id"])), account["id"]


def _stored_link(data_key: DataKey, access: str, account: LinkedAccount) -> dict[str, str]:
    """Return the link data to store with the verification; the secret is sealed."""
    return {
        "id": account.account_id,
        "mask": account.mask,
        "status": account.status,
        "access": data_key.seal_text(access, _place(data_key.subject_id, account.account_id)),
    }


def _place(owner: UUID, account_id: str) -> bytes:
    return associated_data("counterparty", "verification.access", account_id, tenant_id=owner)


def _numbers(account: LinkedAccount) -> dict[str, str]:
    """Return the details of an account that the provider knows so far."""
    return _known_detail_names(
        routing_number=account.routing_number, account_number=account.account_number, account_type=account.account_type
    )


def _known_detail_names(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _counterparty_name(customer: CustomerRow) -> dict[str, Any]:
    """Return the customer's name as a counterparty name: the account is its own."""
    if customer.type == "BUSINESS":
        return {"type": "business", "business_name": customer.name}
    name = parse_person_name(customer.name)
    return {"type": "individual", "first_name": name.first_name, "last_name": name.last_name}
