"""A check that is one query."""

from typing import NamedTuple

from billfold.engine.verify.report import DERIVED


class Query(NamedTuple):
    """A query whose rows are bad ones; its columns are their key."""

    check: str
    table: str
    wrong: str
    sql: str
    sureness: int = DERIVED
