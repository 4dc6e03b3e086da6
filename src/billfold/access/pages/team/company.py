"""For which company somebody acts on a page, and what he is told of his deeds there."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from uuid import UUID

from billfold.access.pages.page_context import Desk
from billfold.access.pages.session import Visit
from billfold.access.pages.sign_in.signed_in import write
from billfold.access.pages.sign_in_audit import origin_of
from billfold.access.users import store as user_store
from billfold.access.users.types import Membership
from billfold.audit import record as audit_record
from billfold.audit.record import Deed
from billfold.events.email import templates as notices
from billfold.platform.errors import NotFound, Refused

ADMINISTRATOR = "ADMIN"


async def memberships(desk: Desk, visit: Visit) -> list[Membership]:
    """Return the memberships of the visitor that are in force, by the companies' names."""
    found = await user_store.memberships_of(desk.bank.pool, visit.person.user_id)
    return [each for each in found if each.status == "ACTIVE"]


async def membership_in(desk: Desk, visit: Visit, customer_id: str) -> Membership:
    """Return what the visitor is to a company. Raises NotFound, for companies of others as well."""
    for each in await memberships(desk, visit):
        if str(each.customer_id) == customer_id.lower():
            return each
    raise NotFound("There is no such company among yours.")


async def company_of(desk: Desk, visit: Visit, customer_id: str) -> Membership:
    """Return what the visitor is to a company that he may manage.

    Raises NotFound where he is no active member, `forbidden` where he is no administrator.
    """
    found = await membership_in(desk, visit, customer_id)
    if found.role != ADMINISTRATOR:
        raise Refused("forbidden", f"Only administrators of {found.customer_name} can do this.")
    return found


async def tell(desk: Desk, visit: Visit, company: Membership, change: str) -> None:
    """Write to the visitor what he, or somebody in his name, has just done."""
    person = visit.person
    notice = notices.program_changed(person, company.customer_name, change, visit.now)
    await write(desk, visit, person, notice)


def recorded(
    desk: Desk, visit: Visit, company: Membership, action: str, program: str | None = None
) -> AbstractAsyncContextManager[Deed]:
    """Lend a transaction in which the visitor changes a program; the audit log tells of it."""
    return audit_record.deed(
        desk.bank.pool, desk.bank.vault, company.customer_id,
        origin_of(visit, visit.person, company.member_id), action,
        resource=("program", program), now=visit.now,
    )  # fmt: skip


def programs_path(customer_id: UUID, *further: str) -> str:
    """Return where the programs of a company are, or one of them."""
    return "/".join((f"/companies/{customer_id}/programs", *further))
