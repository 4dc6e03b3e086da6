"""Turns an approved application into a customer.

Every step may be repeated: ids and keys of commands derive from the applicant, so steps completed before a crash are
found, and only the rest is done.
"""

from typing import Any
from uuid import UUID

from billfold.accounts.agreements.rules import AcceptedBy, Consent
from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.customers.schemas import Name
from billfold.accounts.pockets.commands import OpenPocket
from billfold.accounts.pockets.requests import resolve_strategies
from billfold.accounts.profiles import seal_profile
from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.documents import store as document_store
from billfold.identity.members import store as member_store
from billfold.identity.users import rules
from billfold.identity.users import store as user_store
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin, ScheduledJob
from billfold.onboarding.applications import schemas, store
from billfold.onboarding.applications.changes import ApplicationChange, application_change
from billfold.onboarding.applications.content import Application, content_of, open_application
from billfold.onboarding.applications.forms import AnyForm, BusinessForm, FirstPocket, IndividualForm
from billfold.onboarding.applications.types import TEAM_JOB, ApplicationRow, ApplicationStatus, Role
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id
from billfold.team.invitations import send_password_link

_CALLER = "application"


async def run_approve_job(bank: Bank, job: ScheduledJob) -> None:
    """Run the job that creates the customer of an approved application."""
    row = await store.find_by_applicant(bank.pool, job.object_id)
    if row is None or not row.is_approved or row.status == ApplicationStatus.APPROVED:
        return
    application = await open_application(bank.pool, bank, row)
    await _enrol_customer(bank, application)
    if application.form.first_pocket:
        await _open_first_pocket(bank, row, application.form.first_pocket)
    now, wall = await bank.now(), wall_now()
    async with application_change(bank, row, "approved", origin=Origin.system(), at=now, wall=wall) as change:
        if change.row.status == ApplicationStatus.APPROVED:
            change.action.skip()
            return
        await _complete_approval(change)


async def _enrol_customer(bank: Bank, application: Application) -> None:
    row, form = application.row, application.form
    profile = _business_profile(form) if isinstance(form, BusinessForm) else _individual_profile(form)
    await bank.engine.submit(
        EnrolCustomer(
            caller=_CALLER,
            key=row.applicant_id,
            customers=(row.applicant_id,),
            origin=Origin.system(),
            partner_id=row.partner_id,
            role="customer",
            type=row.kind,
            name=form.name.written if isinstance(form, IndividualForm) else str(form.name),
            profile=await seal_profile(bank, row.applicant_id, profile),
            consent=_consent_of(row, form),
        )
    )


def _consent_of(row: ApplicationRow, form: AnyForm) -> Consent | None:
    given = form.agreement_consent
    if not given:
        return None
    by = (AcceptedBy.PARTNER, row.partner_id)
    if row.submitted_invite_id is not None:
        by = (AcceptedBy.INVITED, row.submitted_invite_id)
    elif row.submitted_by is not None:
        by = (AcceptedBy.USER, row.submitted_by)
    return Consent(
        version=given.version,
        accepted_at=given.timestamp,
        accepted_by=by[0],
        accepted_by_id=by[1],
        ip_address=row.submitted_address,
        user_agent=row.submitted_agent,
        application_id=row.application_id,
    )


async def _open_first_pocket(bank: Bank, row: ApplicationRow, pocket: FirstPocket) -> None:
    """Open it; after an approval with outdated consent, the customer must accept the agreements and open it."""
    deposit, reinvestment = resolve_strategies(
        pocket.deposit_strategy_id,
        pocket.reinvestment_strategy_id,
        pocket_configuration_id=pocket.pocket_configuration_id,
        trading_strategy_id=pocket.trading_strategy_id,
    )
    command = OpenPocket(
        caller=_CALLER,
        key=command_id("application.first_pocket", row.applicant_id),
        customers=(row.applicant_id,),
        origin=Origin.system(),
        partner_id=row.partner_id,
        name=pocket.pocket_name,
        deposit_weeks=deposit,
        reinvestment_weeks=reinvestment,
    )
    try:
        await bank.engine.submit(command)
    except Refused as refused:
        if refused.code != "agreement-not-accepted":
            raise


async def _complete_approval(change: ApplicationChange) -> None:
    """Record the results of the approval, and move to APPROVED."""
    row, conn = change.row, change.action.conn
    documents = [each.document_id for each in change.application.documents]
    await document_store.review_documents(conn, row.customer_id, documents, status="APPROVED", reason=None)
    await _add_administrator(change)
    if await store.list_awaited_members(conn, row):
        await scheduler.schedule(conn, [ScheduledJob(TEAM_JOB, row.applicant_id, row.customer_id, change.at)])
    await change.move(ApplicationStatus.APPROVED)


async def _add_administrator(change: ApplicationChange) -> None:
    """Create the first administrator of a Customer API applicant: its submitter, or the authorized representative."""
    row, conn = change.row, change.action.conn
    owner = await find_customer(conn, row.customer_id)
    if owner is None or owner.role != "customer":
        return
    user_id = row.submitted_by or await _representative(change)
    if user_id is not None:
        member_id = await member_store.add_member(conn, row.applicant_id, user_id, role="ADMIN", now=change.at)
        entry = NewEntry(
            customer_id=row.applicant_id,
            origin=Origin.system(),
            action="member.added",
            resource_type="member",
            resource_id=member_id,
            details={"role": "ADMIN"},
        )
        await record.record(conn, change.bank.vault, entry, now=change.wall)


async def _representative(change: ApplicationChange) -> UUID | None:
    """Return the user of the authorized representative; a new user is mailed a link."""
    for party in change.application.parties.values():
        if Role.AUTHORIZED_REPRESENTATIVE in (party.roles or ()) and party.email and party.name:
            return await _user_of(change, party.email, party.name)
    return None


async def _user_of(change: ApplicationChange, email: str, name: Name) -> UUID:
    conn = change.action.conn
    known = await user_store.find_user_by_email(conn, change.bank.vault, rules.check_email(email))
    if known is not None:
        return known.user_id
    user_id = await member_store.create_user(
        conn, change.bank.vault, email=email, first_name=name.first_name, last_name=name.last_name, now=change.wall
    )
    await send_password_link(change.bank, conn, user_id)
    return user_id


def _business_profile(form: BusinessForm) -> dict[str, Any]:
    content = content_of(form)
    contact, number = content.get("contact", {}), content["identification_number"]
    return {
        "email": contact.get("email"),
        "phone_number": contact.get("phone_number"),
        "address": content.get("address"),
        "identification_number": {
            "identification_number": schemas.mask_number(number["identification_number"]),
            "issuing_country": number.get("issuing_country") or content.get("identification_number_issuing_country"),
            "type": number["type"],
        },
    }


def _individual_profile(form: IndividualForm) -> dict[str, Any]:
    content = content_of(form)
    return {name: content[name] for name in ("name", "date_of_birth", "email", "phone_number", "address")}
