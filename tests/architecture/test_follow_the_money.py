"""The tables under "Money movements" in ARCHITECTURE.md say what the rules really do.

Every row is played on books in memory; the postings and the tables it names are those that were drafted.
"""

import pkgutil
import re
from importlib import import_module

import pytest
from tests.architecture.movements import MOVEMENTS
from tests.architecture.pages import section, table_rows

import billfold
from billfold.ledger.commands import commands

ROWS = {row[0]: row[1:] for row in table_rows(section("ARCHITECTURE.md", "Money movements"))}
_FUNCTION = re.compile(r"`([\w/]+)\.py` `(\w+)`")


def test_every_movement_is_in_the_table_and_every_row_is_played():
    assert sorted(ROWS) == sorted(MOVEMENTS)


def test_every_rule_is_in_the_table_and_every_function_of_the_table_exists():
    for each in pkgutil.walk_packages(billfold.__path__, "billfold."):
        if each.name.endswith(".commands"):
            import_module(each.name)
    rules = {kind.rule for kind in commands() if kind.__module__.startswith("billfold.")}
    named = {(module_of(path), name) for row in ROWS.values() for path, name in _FUNCTION.findall(row[0])}
    assert {(rule.__module__, rule.__name__) for rule in rules} - named == set()
    assert [each for each in named if not hasattr(import_module(each[0]), each[1])] == []


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_movement_posts_and_writes_what_its_row_says(movement):
    _, legs, tables, *_ = ROWS[movement]
    moved = MOVEMENTS[movement]()
    posted = ", ".join(moved.legs) or "none"
    assert re.fullmatch(pattern_of(legs), posted), posted
    assert tables == (", ".join(moved.tables) or "none")


def module_of(path):
    return f"billfold.{path.replace('/', '.')}"


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
