"""The register of everything the APIs can answer that is an error.

Owns code, status, title, meaning and remedy of each, and the page that explains it.
Never raises anything itself and knows no framework: doors look a code up and render it.
"""

from billfold.platform.problems.authentication import ACCESS
from billfold.platform.problems.pages import as_html, as_markdown, index_as_html, index_as_markdown
from billfold.platform.problems.payments import TRANSFERS
from billfold.platform.problems.problem import Problem, by_code
from billfold.platform.problems.requests import REQUESTS
from billfold.platform.problems.states import STATES

PROBLEMS: dict[str, Problem] = by_code(*ACCESS.values(), *REQUESTS.values(), *TRANSFERS.values(), *STATES.values())
"""Every problem under its code."""

__all__ = ["PROBLEMS", "Problem", "as_html", "as_markdown", "index_as_html", "index_as_markdown"]
