"""Customers without onboarding, decisions on applications and counterparties, and other operator actions."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import AcceptedBy, Consent
from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.commands import DecideVerification, ExpireVerification
from billfold.accounts.customers.commands import EnrolCustomer, SetCustomerState
from billfold.accounts.customers.rules import REASON_CHARS_MAX
from billfold.accounts.customers.schemas import Name, parse_person_name
from billfold.accounts.pockets.commands import SetPocketState
from billfold.accounts.profiles import seal_profile
from billfold.http.schemas import NOT_BLANK
from billfold.identity.partners.administration import by_operator, rotate_secret
from billfold.identity.partners.caller import Caller
from billfold.identity.partners.store import find_partner
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.types import PocketStatus
from billfold.oauth import clients
from billfold.onboarding.applications import store
from billfold.onboarding.applications.decisions import decide
from billfold.onboarding.applications.ports import CheckResult, CheckStatus
from billfold.onboarding.applications.types import ApplicationKind
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused
from billfold.sandbox.provisioning import new_key
from billfold.sandbox.routes.operations import derived_id, require_first_partner, sandbox_post
from billfold.sandbox.simulated_providers import NEEDED_OF_BUSINESS, NEEDED_OF_INDIVIDUAL

_FIRST = ("sandbox-of-another-partner",)
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class CreateSandboxCustomer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The data of a customer that the sandbox needs.

    The name of an INDIVIDUAL is an object, or one line with a first and a last name.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=250, pattern=NOT_BLANK)] | Name
    type: Literal["BUSINESS", "INDIVIDUAL"] = "BUSINESS"


class EnrolledCustomer(msgspec.Struct, kw_only=True):
    """The new customer; their first Pocket opens the account."""

    id: UUID
    name: Name | str
    type: Literal["BUSINESS", "INDIVIDUAL"]
    account_status: Literal["PENDING"] = "PENDING"
    object_type: Literal["Customer"] = "Customer"


class CustomerState(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """FROZEN freezes the customer, OPEN unfreezes it; the reason is kept in the audit log."""

    status: Literal["OPEN", "FROZEN"]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=REASON_CHARS_MAX)]


class ChangedCustomer(msgspec.Struct, kw_only=True):
    """The customer after the change."""

    id: UUID
    account_status: CustomerStatus
    object_type: Literal["CustomerState"] = "CustomerState"


class PocketState(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields to change; at least one of the two."""

    status: Literal["OPEN", "FROZEN"] | None = None
    real_time_yield: bool | None = None


class ChangedPocket(msgspec.Struct, kw_only=True):
    """The Pocket after the change."""

    id: UUID
    status: PocketStatus
    real_time_yield: bool
    object_type: Literal["PocketState"] = "PocketState"


@sandbox_post("customers/", name="sandbox_customer", status=201)
async def create_customer(caller: Caller, bank: Bank, data: CreateSandboxCustomer) -> EnrolledCustomer:
    """Create a customer without an application. An idempotency key makes the call repeatable."""
    name, profile = _name_and_profile(data)
    customer_id = derived_id(bank, caller)
    await bank.engine.submit(
        EnrolCustomer(
            **caller.command_fields(customer_id),
            partner_id=caller.partner_id,
            role="customer",
            type=data.type,
            name=name if isinstance(name, str) else name.written,
            profile=await seal_profile(bank, customer_id, profile),
            consent=_consent(caller, bank),
        )
    )
    return EnrolledCustomer(id=customer_id, name=name, type=data.type)


def _consent(caller: Caller, bank: Bank) -> Consent | None:
    """Return the acceptance of the current agreements: there was no application to ask for it."""
    version = bank.terms.agreements.in_force(et_date(caller.now))
    if version is None:
        return None
    return Consent(
        version=version,
        accepted_at=caller.now,
        accepted_by=AcceptedBy.PARTNER,
        accepted_by_id=caller.partner_id,
        ip_address=caller.address,
        user_agent=caller.agent,
    )


def _name_and_profile(data: CreateSandboxCustomer) -> tuple[Name | str, dict[str, Any]]:
    """Return the name in the form of the customer's kind, and the part that the profile keeps."""
    if data.type == "INDIVIDUAL":
        name = parse_person_name(data.name) if isinstance(data.name, str) else data.name
        return name, {"name": msgspec.to_builtins(name)}
    if not isinstance(data.name, str):
        raise InvalidInput.at("body", "name", msg="must be a text for a business")
    return data.name, {}


_STATE_REFUSES = ("customer-not-open", "sanctions-hit-open")


@sandbox_post("customers/{customer_id}/", name="sandbox_customer_state", status=200, refuses=_STATE_REFUSES)
async def set_customer(caller: Caller, bank: Bank, customer_id: UUID, data: CustomerState) -> ChangedCustomer:
    """Freeze a customer, or unfreeze it, as the operator would."""
    row = await caller.customer(bank, customer_id)
    answer = await bank.engine.submit(
        SetCustomerState(
            **caller.command_fields(row.customer_id),
            references=(row.customer_id,),
            status=CustomerStatus(data.status),
            reason=data.reason,
        )
    )
    return ChangedCustomer(id=row.customer_id, account_status=CustomerStatus(answer.outcome["status"]))


@sandbox_post("pockets/{pocket_id}/", name="sandbox_pocket", status=200, refuses=("pocket-not-open",))
async def set_pocket(caller: Caller, bank: Bank, pocket_id: UUID, data: PocketState) -> ChangedPocket:
    """Freeze or unfreeze a Pocket, or switch `real_time_yield`, as the operator would."""
    if data.status is None and data.real_time_yield is None:
        raise InvalidInput([FieldError(("body",), "needs status or real_time_yield", "value_error")])
    customer_id, own_id = await caller.pocket(bank, pocket_id)
    answer = await bank.engine.submit(
        SetPocketState(
            **caller.command_fields(customer_id),
            pocket_id=own_id,
            status=data.status and PocketStatus(data.status),
            real_time_yield=data.real_time_yield,
        )
    )
    return ChangedPocket(
        id=own_id, status=PocketStatus(answer.outcome["status"]), real_time_yield=answer.outcome["real_time_yield"]
    )


class ApplicationDecision(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The decision about a submitted application."""

    application_id: UUID
    status: Literal["APPROVED", "REJECTED", "MANUAL_REVIEW", "DOCUMENTS_NEEDED"]
    reason: Reason | None = None


@sandbox_post(
    "application-decision/",
    name="sandbox_application_decision",
    refuses=("not-found", "application-not-in-review", "application-incomplete"),
)
async def decide_application(caller: Caller, bank: Bank, data: ApplicationDecision) -> None:
    """Decide an application of the partner, or of one of its customers, regardless of its check."""
    row = await store.get_partner_application(bank.pool, caller.partner_id, data.application_id)
    needed = NEEDED_OF_BUSINESS if row.kind == ApplicationKind.BUSINESS else NEEDED_OF_INDIVIDUAL
    result = CheckResult(
        status=CheckStatus(data.status),
        reasons=(data.reason or f"SANDBOX_{data.status}",) if data.status != "APPROVED" else (),
        documents=(needed,) if data.status == "DOCUMENTS_NEEDED" else (),
    )
    await decide(bank, row, result, origin=caller.origin, now=caller.now)


class VerificationRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The result of the verification of a counterparty that is PENDING."""

    counterparty_id: UUID
    status: Literal["APPROVED", "REJECTED", "EXPIRED"]
    reason: Reason | None = None


@sandbox_post(
    "counterparty-verification/",
    name="sandbox_counterparty_verification",
    refuses=("not-found", "counterparty-not-pending", "document-not-in-review"),
)
async def end_verification(caller: Caller, bank: Bank, data: VerificationRequest) -> None:
    """Approve or reject the pending step of a counterparty, or let it expire."""
    owner, own_id = await caller.owned(bank, "counterparty", data.counterparty_id)
    row = await counterparty_store.get_counterparty(bank.pool, owner, own_id)
    if data.status == "EXPIRED":
        if row.status != "PENDING":
            raise Refused("counterparty-not-pending", f"The counterparty is {row.status}.")
        expired = ExpireVerification(**caller.command_fields(owner), counterparty_id=own_id)
        await bank.engine.submit(expired)
        return
    await bank.engine.submit(
        DecideVerification(
            **caller.command_fields(owner),
            references=tuple(counterparty_store.document_ids_of(row)),
            counterparty_id=own_id,
            approved=data.status == "APPROVED",
            reason=data.reason,
        )
    )


class RotateCredentials(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An OAuth client whose key is replaced; without one it is the signing secret of the partner."""

    client_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None


class RotatedCredentials(msgspec.Struct, kw_only=True):
    """A new signing secret, or a new key of an OAuth client (PEM) and its id."""

    shared_secret: str | None = None
    private_key: str | None = None
    kid: str | None = None


@sandbox_post("credentials/rotate/", name="sandbox_rotate_credentials", status=201, refuses=("not-found", *_FIRST))
async def rotate_credentials(caller: Caller, bank: Bank, data: RotateCredentials) -> RotatedCredentials:
    """Replace the signing secret of the partner, or the key of an OAuth client, as its operator would.

    The former stays valid for a day. One that was replaced before ends at once, a key with all tokens of its client.
    """
    await require_first_partner(bank, caller)
    if data.client_id is None:
        partner = await find_partner(bank.pool, caller.partner_slug)
        assert partner is not None
        return RotatedCredentials(shared_secret=await rotate_secret(by_operator(bank, partner)))
    private, public = new_key()
    now, client_id = wall_now(), data.client_id
    client = await clients.find_client(bank.pool, client_id)
    if client is None or client.revoked_at is not None:
        raise NotFound("There is no such client.")
    if owner_id := client.customer_id or client.owner_id:
        await caller.owner(bank, owner_id)  # the customers of another partner are not there
    async with bank.pool.acquire() as conn, conn.transaction():
        for each in await clients.list_client_keys(conn, client_id, now):
            if each.expires_at is not None:
                await clients.revoke_client_key(conn, client_id, each.key_id, now=now)
        key = await clients.rotate_client_key(conn, client_id, public, now=now)
        await clients.record_oauth_client(bank, conn, client, action="service_user.key_rotated", key_id=key.key_id)
    return RotatedCredentials(private_key=private, kid=key.key_id)
