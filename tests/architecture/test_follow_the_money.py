"""The tables in docs/domain/movements.md say what the rules really do.

Every row is played in a bank in memory: the functions it names are called, and the postings and the
tables it names are those that are written.
"""

import pkgutil
import re
from importlib import import_module

import pytest
from tests.architecture.movements import play_all
from tests.architecture.pages import table_rows, text_of

import billfold
from billfold.ledger.commands import commands

ROWS = {row[0]: row[1:] for row in table_rows(text_of("docs/domain/movements.md"))}
_FUNCTION = re.compile(r"`([\w/]+)\.py` `(\w+)`")


def functions_of(row):
    return {(f"billfold.{path.replace('/', '.')}", name) for path, name in _FUNCTION.findall(row[0])}


NAMED = set().union(*map(functions_of, ROWS.values()))


@pytest.fixture(scope="module")
def played_movements():
    return play_all(NAMED)


def test_every_money_movement_has_a_table_row_and_every_row_is_executed(played_movements):
    assert sorted(ROWS) == sorted(played_movements)


def test_every_rule_has_a_row_in_the_movements_table():
    for each in pkgutil.walk_packages(billfold.__path__, "billfold."):
        if each.name.endswith(".commands"):
            import_module(each.name)
    rules = {kind.rule for kind in commands() if kind.__module__.startswith("billfold.")}
    assert {(rule.__module__, rule.__name__) for rule in rules} - NAMED == set()


@pytest.mark.parametrize("movement", ROWS)
def test_a_movement_matches_the_functions_postings_and_tables_of_its_row(played_movements, movement):
    _, postings, tables, *_ = ROWS[movement]
    moved = played_movements[movement]
    assert functions_of(ROWS[movement]) - moved.functions == set()
    posted = ", ".join(moved.postings) or "none"
    assert re.fullmatch(pattern_of(postings), posted), posted
    assert tables == (", ".join(moved.tables) or "none")


def pattern_of(cell):
    """The postings of a row as a pattern: `lot*` is one per lot, `(...)*` once per bill."""
    parts = re.findall(r"\([^)]*\)\*|[^,()]+", cell.replace("`", "").replace(" ", ""))
    return ", ".join(_block(part[1:-2]) if part.startswith("(") else _posting(part) for part in parts)


def _block(text):
    return _repeated(", ".join(_posting(each) for each in text.split(",")))


def _posting(text):
    return _repeated(re.escape(text.replace("*", ""))) if "*" in text else re.escape(text)


def _repeated(pattern):
    return rf"{pattern}(?:, {pattern})*"
