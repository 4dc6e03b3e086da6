"""The register of everything the APIs can answer that is an error.

Owns code, status, title, meaning and remedy of each, and the page that explains it.
Never raises anything itself and knows no framework: doors look a code up and render it.
"""

from billfold.kit.problems.access import ACCESS
from billfold.kit.problems.problem import Problem, by_code
from billfold.kit.problems.render import as_html, as_markdown, index_as_html, index_as_markdown
from billfold.kit.problems.requests import REQUESTS
from billfold.kit.problems.states import STATES
from billfold.kit.problems.transfers import TRANSFERS

PROBLEMS: dict[str, Problem] = by_code(
    *ACCESS.values(), *REQUESTS.values(), *TRANSFERS.values(), *STATES.values()
)
"""Every problem under its code."""

__all__ = ["PROBLEMS", "Problem", "as_html", "as_markdown", "index_as_html", "index_as_markdown"]
