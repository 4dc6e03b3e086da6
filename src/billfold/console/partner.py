"""A partner in the console: the visitor as a member of the partner's own team.

A page function takes it as `partner`; its path begins with `/partners/{slug:str}`.
"""

from __future__ import annotations

from litestar.params import SkipValidation

from billfold.access.partners.store import find_partner
from billfold.access.partners.types import PartnerRow
from billfold.console.team import TeamPage, Visit, visit_of
from billfold.pages.page_context import PageContext


class Partner(TeamPage):
    """One request of a member of a partner's team to a page of the partner; `row` is the partner as stored."""

    def __init__(self, visit: Visit, row: PartnerRow) -> None:
        super().__init__(visit)
        self.row = row


InPartner = SkipValidation[Partner]
"""What a page function takes as `partner`."""


async def in_partner(page: PageContext, slug: str) -> Partner:
    """Return the visitor as a member of the partner's team. Raises NotFound, for partners of others as well."""
    visit = await visit_of(page, lambda each: each.partner_slug == slug, "partner")
    row = await find_partner(page.pool, slug)
    assert row is not None
    return Partner(visit, row)
