"""What is found of one thing that a bank needs."""

from typing import NamedTuple


class HealthCheck(NamedTuple):
    """The result of one check. `next_step` is empty when it passed."""

    what: str
    found: str
    next_step: str = ""
