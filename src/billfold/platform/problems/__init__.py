"""The register of all error responses of the APIs.

Owns code, status, title, meaning and remedy of each, and the page that explains it.
Never raises anything itself and knows no framework: the APIs look a code up and render it.
"""

from dataclasses import replace

from billfold.platform.errors import Problem
from billfold.platform.problems.payments import TRANSFERS
from billfold.platform.problems.requests import ACCESS, REQUESTS, SANDBOX
from billfold.platform.problems.returns import RETURNS
from billfold.platform.problems.states import STATES

PROBLEMS: dict[str, Problem] = {
    code: replace(each, code=code)
    for part in (ACCESS, REQUESTS, TRANSFERS, RETURNS, STATES, SANDBOX)
    for code, each in part.items()
}
"""Every problem by its code."""

__all__ = ["ACCESS", "PROBLEMS", "REQUESTS", "RETURNS", "SANDBOX", "STATES", "TRANSFERS", "Problem"]
