"""What is measured in the database."""

from collections.abc import Sequence
from typing import NamedTuple


class DatabaseGauge(NamedTuple):
    """One metric whose values are read from the database; each row of its query is labels and the value."""

    name: str
    about: str
    labels: Sequence[str]
    query: str


class Measured(NamedTuple):
    """The values of one metric."""

    gauge: DatabaseGauge
    values: Sequence[tuple[Sequence[str], float]]
