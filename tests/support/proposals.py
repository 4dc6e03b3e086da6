"""Movements of money that one operator proposes and another confirms, by commands."""

import re

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator


def proposed(answer):
    """Return the id of what a command has proposed, from its status and what it said."""
    status, said = answer
    assert (status, "Another operator confirms it" in said) == (0, True), said
    return re.findall(r"proposals confirm ([0-9a-f-]{36})", said)[0]


def confirmed(billfold, answer):
    """Confirm what a command has proposed, as another operator; return what is said."""
    status, said = billfold("proposals", "confirm", proposed(answer), BILLFOLD_OPERATOR="otto")
    assert (status, "APPLIED" in said) == (0, True), said
    return said


async def confirm_as_otto(bank, said):
    """Confirm what a command of the tests has proposed, as another operator."""
    await confirm(bank, proposed((0, said)), by=Operator.of_command_line("otto"))
