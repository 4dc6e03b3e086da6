"""Every noun says what it owns and what it never does, and names what it shows."""

import ast

import pytest
from tests.architecture.pages import SOURCE

FACADES = sorted((SOURCE / "domain").glob("*/__init__.py"))


def noun(path):
    return path.parent.name


@pytest.mark.parametrize("facade", FACADES, ids=noun)
def test_a_noun_says_what_it_owns_and_never_does(facade):
    said = ast.get_docstring(ast.parse(facade.read_text())) or ""
    assert "Owns " in said
    assert "never " in said.lower()


@pytest.mark.parametrize("facade", FACADES, ids=noun)
def test_a_noun_lists_exactly_the_names_it_shows(facade):
    tree = ast.parse(facade.read_text())
    imported = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert len(listed) == 1
    assert sorted(listed[0]) == sorted(imported)
