"""The bank itself in the console: the visitor as a member of its team, an operator.

A page function takes it as `operator`; its path begins with `/bank`.
"""

from __future__ import annotations

from litestar.params import SkipValidation

from billfold.console.team import TeamPage, visit_of
from billfold.pages.page_context import PageContext


class Operator(TeamPage):
    """One request of an operator to a page of the bank."""


InBank = SkipValidation[Operator]
"""What a page function takes as `operator`."""


async def in_bank(page: PageContext) -> Operator:
    """Return the visitor as an operator. Raises NotFound for everybody else."""
    return Operator(await visit_of(page, lambda each: each.is_of_bank, "bank"))
