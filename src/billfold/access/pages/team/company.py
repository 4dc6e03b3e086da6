"""For which company somebody acts on a page, and what he is told of his deeds there."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from uuid import UUID

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.pages.sign_in.signed_in import send_email
from billfold.access.pages.sign_in_audit import origin_of
from billfold.access.users import store as user_store
from billfold.access.users.types import Membership
from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.events.email import templates as notices
from billfold.platform.errors import NotFound, Refused

ADMINISTRATOR = "ADMIN"


async def memberships(server: PageServer, context: PageContext) -> list[Membership]:
    """Return the memberships of the visitor that are in force, by the companies' names."""
    found = await user_store.list_user_memberships(server.bank.pool, context.person.user_id)
    return [each for each in found if each.status == "ACTIVE"]


async def get_membership(server: PageServer, context: PageContext, customer_id: str) -> Membership:
    """Return what the visitor is to a company. Raises NotFound, for companies of others as well."""
    for each in await memberships(server, context):
        if str(each.customer_id) == customer_id.lower():
            return each
    raise NotFound("There is no such company among yours.")


async def get_administered_company(server: PageServer, context: PageContext, customer_id: str) -> Membership:
    """Return what the visitor is to a company that he may manage.

    Raises NotFound where he is no active member, `forbidden` where he is no administrator.
    """
    found = await get_membership(server, context, customer_id)
    if found.role != ADMINISTRATOR:
        raise Refused("forbidden", f"Only administrators of {found.customer_name} can do this.")
    return found


async def notify_client_change(server: PageServer, context: PageContext, company: Membership, change: str) -> None:
    """Write to the visitor what he, or somebody in his name, has just done."""
    user = context.person
    notice = notices.client_changed(user, company.customer_name, change, context.now)
    await send_email(server, context, user, notice)


def audited_client_change(
    server: PageServer, context: PageContext, company: Membership, action: str, program: str | None = None
) -> AbstractAsyncContextManager[AuditedAction]:
    """Lend a transaction in which the visitor changes a program; the audit log tells of it."""
    return audit_record.audited(
        server.bank.pool,
        server.bank.vault,
        company.customer_id,
        origin_of(context, context.person, company.member_id),
        action,
        resource=("program", program),
        now=context.now,
    )


def clients_path(customer_id: UUID, *further: str) -> str:
    """Return where the programs of a company are, or one of them."""
    return "/".join((f"/companies/{customer_id}/programs", *further))
