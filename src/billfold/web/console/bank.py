"""The bank itself in the console: the visitor as a member of its team, an operator.

A page function takes it as `operator`; its path begins with `/bank`.
"""

from typing import Any

from litestar.params import SkipValidation
from typing_extensions import override

from billfold.identity.operators import Operator, Power
from billfold.web.console.team import TeamPage, Visit, visit_of
from billfold.web.page_context import PageContext, PageResponse
from billfold.web.sign_in_audit import origin_of


class BankPage(TeamPage):
    """One request of an operator to a page of the bank. `by` is the operator as the bank's functions take one."""

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit)
        self.name = "Operators"
        self.bank = self.page.server.bank
        origin = origin_of(self.page, self.page.user.name, self.own.member_id)
        self.by = Operator.of_member(origin, user_id=self.page.user.user_id, role=self.own.role)

    def may(self, power: str) -> bool:
        """Tell whether the operator has a power, by its name in lower case."""
        return self.by.may(Power[power.upper()])

    @override
    def render(self, name: str, **facts: Any) -> PageResponse:
        """Return a page with what all pages of the bank show."""
        return super().render(name, operator=self, **facts)


InBank = SkipValidation[BankPage]
"""What a page function takes as `operator`."""


async def in_bank(page: PageContext) -> BankPage:
    """Return the visitor as an operator. Raises NotFound for everybody else."""
    return BankPage(await visit_of(page, lambda each: each.is_of_bank, "bank"))
