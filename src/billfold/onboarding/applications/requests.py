"""Requests about applications, the same for both APIs."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import msgspec

from billfold.audit.record import audited_by
from billfold.http.caller import Call
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, uses_of
from billfold.ledger.customers import require_active
from billfold.ledger.types import Origin
from billfold.oauth.caller import CustomerCaller
from billfold.onboarding.applications import forms, store
from billfold.onboarding.applications.changes import ApplicationChange, application_change, begin_application
from billfold.onboarding.applications.content import (
    Application,
    Content,
    content_of,
    open_application,
    seal_application,
)
from billfold.onboarding.applications.forms import PARTIES_MAX, RelatedPartyForm
from billfold.onboarding.applications.rules import fields
from billfold.onboarding.applications.rules.fields import merge_content
from billfold.onboarding.applications.rules.status import require_complete, require_editable
from billfold.onboarding.applications.types import ApplicationKind, ApplicationRow, ApplicationStatus, applicant_id_of
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import InvalidInput, NotFound, Refused

_MAC = "application"
Check = Callable[[Application], None]
"""Checks an application before it is changed, and raises if the change must not happen."""


def owner_of(call: Call) -> UUID:
    """Return the owner of the caller's applications: the partner's own customer, or that of the token or the invite."""
    if isinstance(call, Caller):
        return call.own_customer_id
    assert call.only_customer_id is not None
    return call.only_customer_id


async def find_own(
    call: Call, bank: Bank, application_id: UUID, kind: ApplicationKind | None = ApplicationKind.BUSINESS
) -> ApplicationRow:
    """Return an application of the caller. Raises NotFound, also for one of another kind."""
    row = await store.get_application(bank.pool, owner_of(call), application_id)
    if kind not in {None, row.kind}:
        raise NotFound("There is no such application.")
    return row


async def read_application(
    call: Call, bank: Bank, application_id: UUID, kind: ApplicationKind | None = ApplicationKind.BUSINESS
) -> Application:
    """Return an application of the caller with its content. Raises NotFound."""
    return await open_application(bank.pool, bank, await find_own(call, bank, application_id, kind))


async def create_application(
    call: Call, bank: Bank, kind: ApplicationKind, form: forms.AnyForm, *, application_id: UUID | None
) -> Application:
    """Create an application; one with the same id and content is returned as it is now.

    Raises InvalidInput, Refused `duplicate-id`, `customer-not-open`.
    """
    fields.check_form(form, now=call.now, wall=call.wall)
    require_active((await call.customer(bank, owner_of(call))).account_status)
    owner, own_id = owner_of(call), application_id or call.new_resource_id(bank.seed)
    content = _normalize_content(merge_content({}, content_of(form) | {"id": None}))
    row = await _new_row(call, bank, kind, content, application_id=own_id)
    async with audited_by(
        call, bank, owner, "application.created", resource_id=own_id, details={"kind": kind}
    ) as action:
        made = await begin_application(bank, action, row, at=call.now, wall=call.wall)
        if made is not None:
            return made
        found = await store.get_application(action.conn, owner, own_id)
        if found.kind != kind or not bank.vault.verify_mac(found.request_mac, _canonical(content), _MAC):
            raise Refused("duplicate-id", "There is an application with this id and other content.")
        action.skip()
        return await open_application(action.conn, bank, found)


async def update_application(
    call: Call, bank: Bank, row: ApplicationRow, data: forms.BusinessForm, *, check: Check | None = None
) -> Application:
    """Change fields; `check` sees the application first, locked. Raises InvalidInput, Refused, NotFound.

    Refuses: application-not-editable.
    """
    changes = content_of(data)
    async with _open_change(call, bank, row, "updated", fields=sorted(changes)) as change:
        require_editable(change.row)
        if check is not None:
            check(change.application)
        content = _normalize_content(merge_content(content_of(change.application.form), changes))
        fields.check_form(msgspec.convert(content, forms.BusinessForm), now=call.now, wall=call.wall)
        await change.save(content)
        return change.application


async def submit_application(
    call: Call,
    bank: Bank,
    row: ApplicationRow,
    *,
    consent: forms.AgreementConsent | None = None,
    invite_id: UUID | None = None,
    check: Check | None = None,
) -> Application:
    """Submit for verification, with a consent given now; `check` sees the application first, locked.

    `invite_id`: the invited person submits it.

    Refuses: application-not-editable, application-incomplete, customer-not-open, usage-limit-reached.
    """
    owner = await call.customer(bank, row.customer_id)
    require_active(owner.account_status)
    user_id = call.access.user_id if isinstance(call, CustomerCaller) else None
    # A partner's own customer applies for all its other customers.
    own_id = None if owner.role == "partner" else row.customer_id
    uses = uses_of("application_checks", customer=own_id, partner=owner.partner_id)
    async with _open_change(call, bank, row, "submitted") as change:
        require_editable(change.row)
        if check is not None:
            check(change.application)
        if consent is not None:
            accepted = {"agreement_consent": msgspec.to_builtins(consent)}
            await change.save(merge_content(content_of(change.application.form), accepted))
        require_complete(change.application.missing(bank.seed))
        await change.move(
            ApplicationStatus.SUBMITTED,
            submitted_at=call.now,
            submitted_by=user_id,
            submitted_address=call.address,
            submitted_agent=call.agent,
            submitted_invite_id=invite_id,
        )
        # Last, because others of the partner wait here until this transaction is committed.
        await count_usage(change.action.conn, bank.settings.limits, uses, call.wall)
        return change.application


async def withdraw_application(call: Call, bank: Bank, row: ApplicationRow) -> Application:
    """Close an application that was never submitted. Raises Refused `application-not-editable`."""
    async with _open_change(call, bank, row, "withdrawn") as change:
        if change.row.status != ApplicationStatus.CREATED:
            raise Refused("application-not-editable", f"The application is {change.row.status}, and not CREATED.")
        await change.move(ApplicationStatus.CLOSED)
        return change.application


async def add_related_party(
    call: Call, bank: Bank, row: ApplicationRow, data: RelatedPartyForm
) -> tuple[Application, UUID]:
    """Add a related party; return its id too. Raises InvalidInput, Refused `application-not-editable`."""
    party_id = call.new_resource_id(bank.seed)
    async with _open_change(call, bank, row, "related_party_added", related_party_id=str(party_id)) as change:
        require_editable(change.row)
        await add_party(call, change, party_id, content_of(data))
        return change.application, party_id


async def add_party(call: Call, change: ApplicationChange, party_id: UUID, content: Content) -> None:
    """Add a related party within a change of its application. Raises InvalidInput."""
    if len(change.application.parties) >= PARTIES_MAX and party_id not in change.application.parties:
        raise InvalidInput.at("body", msg=f"An application has at most {PARTIES_MAX} related parties")
    await _save_party(call, change, party_id, content)


async def update_related_party(
    call: Call, bank: Bank, row: ApplicationRow, party_id: UUID, data: RelatedPartyForm, *, check: Check | None = None
) -> Application:
    """Change a related party; `check` sees the application first, locked. Raises NotFound, InvalidInput, Refused.

    Refuses: application-not-editable.
    """
    await find_party(bank, row, party_id)
    changes = content_of(data)
    details = {"related_party_id": str(party_id), "fields": sorted(changes)}
    async with _open_change(call, bank, row, "related_party_updated", **details) as change:
        require_editable(change.row)
        party = party_in(change.application, party_id)
        if check is not None:
            check(change.application)
        await _save_party(call, change, party_id, merge_content(content_of(party), changes))
        return change.application


async def remove_related_party(call: Call, bank: Bank, row: ApplicationRow, party_id: UUID) -> None:
    """Remove a related party. Raises NotFound, Refused `application-not-editable`."""
    await find_party(bank, row, party_id)
    async with _open_change(call, bank, row, "related_party_removed", related_party_id=str(party_id)) as change:
        require_editable(change.row)
        party_in(change.application, party_id)
        await change.remove_party(party_id)


async def find_party(bank: Bank, row: ApplicationRow, party_id: UUID) -> Application:
    """Return an application that has this related party. Raises NotFound."""
    application = await open_application(bank.pool, bank, row)
    party_in(application, party_id)
    return application


def party_in(application: Application, party_id: UUID) -> RelatedPartyForm:
    """Return a related party of an application. Raises NotFound."""
    if party_id not in application.parties:
        raise NotFound("There is no such related party.")
    return application.parties[party_id]


async def _save_party(call: Call, change: ApplicationChange, party_id: UUID, content: Content) -> None:
    content = _normalize_content(merge_content({}, content))
    party = msgspec.convert(content, RelatedPartyForm)
    fields.check_form(party, now=call.now, wall=call.wall)
    fields.check_ownership((change.application.parties | {party_id: party}).values())
    await change.save_party(party_id, content)


async def _new_row(
    call: Call, bank: Bank, kind: ApplicationKind, content: Content, *, application_id: UUID
) -> ApplicationRow:
    owner = owner_of(call)
    applicant_id = applicant_id_of(bank.seed, owner, application_id)
    return ApplicationRow(
        customer_id=owner,
        application_id=application_id,
        applicant_id=applicant_id,
        partner_id=call.partner_id,
        kind=kind,
        status=ApplicationStatus.CREATED,
        is_approved=False,
        content=await seal_application(bank.pool, bank, applicant_id, application_id, content=content),
        request_mac=bank.vault.compute_mac(_canonical(content), _MAC),
        requested_documents=(),
        exception_reasons=(),
        move_no=0,
        created_at=call.now,
        updated_at=call.now,
        submitted_at=None,
        submitted_by=None,
        submitted_address=None,
        submitted_agent=None,
    )


def _open_change(
    call: Call, bank: Bank, row: ApplicationRow, verb: str, **details: object
) -> AbstractAsyncContextManager[ApplicationChange]:
    origin: Origin = call.origin
    return application_change(bank, row, verb, origin=origin, at=call.now, wall=call.wall, details=details)


def _normalize_content(content: Content) -> Content:
    """Return fields with phone numbers as E.164 and without duplicates in sets."""
    content = fields.with_e164_numbers(content)
    if "roles" in content:
        content["roles"] = list(dict.fromkeys(content["roles"]))
    if "risk_categories" in content.get("risk_info", {}):
        categories = list(dict.fromkeys(content["risk_info"]["risk_categories"]))
        content["risk_info"] = content["risk_info"] | {"risk_categories": categories}
    return content


def _canonical(content: Content) -> bytes:
    return msgspec.json.encode(content, order="deterministic")
