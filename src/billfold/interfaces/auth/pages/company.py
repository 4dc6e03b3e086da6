"""Of which companies a person is an administrator, and what he is told of his deeds there."""

from __future__ import annotations

from uuid import UUID

from billfold.domain.people import Membership, notices
from billfold.interfaces.auth.pages.arriving import write
from billfold.interfaces.auth.pages.companies import membership_in
from billfold.interfaces.auth.pages.entrance import Desk
from billfold.interfaces.auth.pages.visits import Visit
from billfold.kit.errors import BillfoldError

ADMINISTRATOR = "ADMIN"


async def company_of(desk: Desk, visit: Visit, customer_id: str) -> Membership:
    """Return what the visitor is to a company that he may manage.

    Raises NotFound where he is no active member, `forbidden` where he is no administrator.
    """
    found = await membership_in(desk, visit, customer_id)
    if found.role != ADMINISTRATOR:
        raise BillfoldError(
            "forbidden", f"Programs of {found.customer_name} are its administrators' matter."
        )
    return found


async def tell(desk: Desk, visit: Visit, company: Membership, change: str) -> None:
    """Write to the visitor what he, or somebody in his name, has just done."""
    person = visit.person
    notice = notices.program_changed(person, company.customer_name, change, visit.now)
    await write(desk, visit, person, notice)


def programs_path(customer_id: UUID, *further: str) -> str:
    """Return where the programs of a company are, or one of them."""
    return "/".join((f"/companies/{customer_id}/programs", *further))
