"""Accounts that users link through a linking provider, by signing in at their own bank; and counterparties of v1."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.commands import AddCounterparty, SettleLink
from billfold.accounts.counterparties.ports import LinkedAccount, LinkedInstitution, LinkError, LinkingProvider
from billfold.accounts.counterparties.requests import add_counterparty, read_counterparty
from billfold.accounts.counterparties.v1_schemas import (
    V1_COUNTERPARTY_TYPES,
    LinkedCounterparties,
    LinkRequest,
    LinkTokenAnswer,
    LinkTokenRequest,
    OlderCounterparties,
    OlderCounterparty,
    has_v1_form,
    render_v1_counterparty,
)
from billfold.accounts.customers.schemas import parse_person_name
from billfold.accounts.pockets.routes import V1_READS
from billfold.http.caller import Caller
from billfold.http.operations import get, post
from billfold.ledger.bank import Bank
from billfold.ledger.directory.store import find_customer
from billfold.ledger.directory.types import CustomerRow
from billfold.platform.errors import InvalidInput, NotFound, Refused

_COUNTERPARTIES_MAX = 1000


@post(
    "/api/v1/customers/{customer_id}/counterparties/linking-provider/link-token/",
    tag="counterparties",
    status=200,
    refuses=("rail-not-available", "counterparty-type-mismatch"),
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
    refuses=("rail-not-available", "customer-not-open"),
)
async def link_accounts(caller: Caller, bank: Bank, customer_id: UUID, data: LinkRequest) -> LinkedCounterparties:
    """Link accounts.

    Create counterparties of the accounts chosen on the linking provider's pages.
    """
    owner = await caller.owner(bank, customer_id)
    chosen = [each.id for each in data.accounts]
    if len(set(chosen)) != len(chosen):
        raise InvalidInput.at("body", "accounts", msg="name an account twice")
    try:
        linked = await _provider(bank).exchange(data.public_token, chosen)
    except LinkError as refused:
        raise InvalidInput.at("body", refused.field, msg=str(refused)) from None
    customer = await find_customer(bank.pool, owner)
    if customer is None:
        raise NotFound("There is no such customer.")
    created = []
    for step, (requested, account) in enumerate(zip(data.accounts, linked.accounts, strict=True)):
        command = AddCounterparty(
            **caller.command_fields(owner, step=step),
            type="ach",
            counterparty_name=_counterparty_name(customer),
            display_name=requested.name or None,
            details=_account_details(linked, account),
            verification="linking_provider",
            linked=_stored_link(bank, owner, linked, account=account),
        )
        created.append(await add_counterparty(bank, command))
    return LinkedCounterparties(items=[await read_counterparty(bank, owner, each) for each in created])


@post(
    "/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/linking-provider/verify/",
    tag="counterparties",
    status=204,
    refuses=("rail-not-available", "counterparty-type-mismatch"),
)
async def verify_linked_account(caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID) -> None:
    """Refresh linked account.

    Fetch the verification status of a linked account from the linking provider.
    """
    owner = await caller.owner(bank, customer_id)
    access, account_id = await _link_of(bank, owner, counterparty_id)
    status = await _provider(bank).status_of(access, account_id)
    await bank.engine.submit(
        SettleLink(**caller.command_fields(owner), counterparty_id=counterparty_id, link_status=status)
    )


@get("/api/v1/customers/{customer_id}/counterparties/", tag="counterparties", deprecated=V1_READS)
async def list_v1_counterparties(caller: Caller, bank: Bank, customer_id: UUID) -> OlderCounterparties:
    """List counterparties (v1).

    Accounts that ACH entries and domestic wires reach, newest first. Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    rows = await counterparty_store.COUNTERPARTIES.rows(
        bank.pool, owner, list(V1_COUNTERPARTY_TYPES), None, limit=_COUNTERPARTIES_MAX
    )
    shown = [render_v1_counterparty(row) for row in rows if has_v1_form(row)]
    return OlderCounterparties(count=len(shown), counterparties=shown)


@get("/api/v1/customers/{customer_id}/counterparties/{counterparty_id}/", tag="counterparties", deprecated=V1_READS)
async def get_v1_counterparty(
    caller: Caller, bank: Bank, customer_id: UUID, counterparty_id: UUID
) -> OlderCounterparty:
    """Get counterparty (v1).

    Use v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    row = await counterparty_store.get_counterparty(bank.pool, owner, counterparty_id)
    if not has_v1_form(row):
        raise NotFound("There is no such counterparty.")
    return render_v1_counterparty(row)


def _provider(bank: Bank) -> LinkingProvider:
    if bank.linking is None:
        raise Refused("rail-not-available", "The bank has no linking provider.")
    return bank.linking


async def _link_of(bank: Bank, owner: UUID, counterparty_id: UUID) -> tuple[str, str]:
    """Return the secret of a link and the provider's id of the account."""
    row = await counterparty_store.get_counterparty(bank.pool, owner, counterparty_id)
    account = msgspec.json.decode(row.verification).get("account")
    if account is None:
        raise Refused("counterparty-type-mismatch", "The counterparty was not linked through the provider.")
    sealed = base64.b64decode(account["access"])
    return bank.vault.open(sealed, owner.bytes).decode(), account["id"]


def _account_details(linked: LinkedInstitution, account: LinkedAccount) -> dict[str, Any]:
    fields = {
        "routing_number": account.routing_number,
        "account_number": account.account_number,
        "account_type": account.account_type,
        "institution_name": linked.institution_name,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _stored_link(bank: Bank, owner: UUID, linked: LinkedInstitution, account: LinkedAccount) -> dict[str, str]:
    """Return what is kept of a link with the verification; the secret is sealed."""
    sealed = bank.vault.seal(linked.access.encode(), owner.bytes)
    return {
        "id": account.account_id,
        "mask": account.mask,
        "status": account.status,
        "access": base64.b64encode(sealed).decode(),
    }


def _counterparty_name(customer: CustomerRow) -> dict[str, Any]:
    """Return the customer's name in the form of a counterparty: the account is its own."""
    if customer.type == "BUSINESS":
        return {"type": "business", "business_name": customer.name}
    name = parse_person_name(customer.name)
    return {"type": "individual", "first_name": name.first_name, "last_name": name.last_name}
