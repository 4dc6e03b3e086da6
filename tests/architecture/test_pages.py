"""Links, commands, recipes and settings that the pages of the project name exist."""

import ast
import re
import tomllib
from functools import cache

import pytest
import typer
from tests.architecture.pages import PAGES, ROOT, code, links, name_of, text_of

from billfold.platform.settings.settings import declared_settings
from billfold.platform.settings.validation import variable_name
from billfold.wiring.cli.app import build_app
from billfold.wiring.cli_context import Wiring

CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
_CALL = re.compile(r"(?:^|\s|/)billfold ((?:[a-z-]+)(?: .*)?)$")
_RECIPE = re.compile(r"\bmake ([a-z]+)\b")
_VARIABLE = re.compile(r"\bBILLFOLD_[A-Z_]+\b")
OF_TESTS = {"BILLFOLD_SCREENSHOTS", "BILLFOLD_TEST_CITUS_URL"}
"""What the tests read, and no setting of the bank."""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_the_documentation_resolve(page):
    assert [to for to in links(page) if not (page.parent / to).exists()] == []


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_commands_mentioned_in_the_docs_exist(page):
    called = [found[1] for line in code(page) if (found := _CALL.search(line))]
    assert [words for words in called if not is_a_command(words)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_recipes_mentioned_in_the_docs_exist(page):
    recipes = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert {name for line in code(page) for name in _RECIPE.findall(line)} <= recipes


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_settings_mentioned_in_the_docs_exist(page):
    known = {variable_name(name) for name in declared_settings()}
    named = {name.removesuffix("_FILE") for name in _VARIABLE.findall(page.read_text())}
    assert named - {"BILLFOLD_", *OF_TESTS} <= known


def test_python_samples_of_the_readme_compile():
    blocks = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.MULTILINE | re.DOTALL)
    assert blocks
    assert all(ast.parse(block) for block in blocks)


def test_every_test_referenced_by_the_security_page_exists():
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert set(re.findall(r"`(test_\w+)`", text_of("docs/security.md"))) <= there


def test_the_license_file_matches_the_declared_license():
    named = tomllib.loads(text_of("pyproject.toml"))["project"]["license"]
    assert f"[{named}](LICENSE)" in text_of("README.md")
    assert "Apache License" in text_of("LICENSE")


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ("clock advance --business-days 1", True),
        ("verify", True),
        ("clock rewind", False),
        ("verify --harder", False),
        ("clock", True),
        ("nothing", False),
    ],
)
def test_a_command_is_recognized_by_its_words(words, there):
    assert is_a_command(words) is there


def is_a_command(words):
    """Return whether these words are one of our commands with its own options."""
    command = command_line()
    names = re.split(r"\s+", re.split(r"\s[>|#&]", words)[0].strip())
    while hasattr(command, "commands") and names and not names[0].startswith("-"):
        command = command.commands.get(names.pop(0))
        if command is None:
            return False
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    given = {name.partition("=")[0] for name in names if name.startswith("-")}
    passed_on = "ignore_unknown_options" in command.context_settings
    return passed_on or given <= known | {"--help", "-h"}


@cache
def command_line():
    return typer.main.get_command(build_app(Wiring({})))
