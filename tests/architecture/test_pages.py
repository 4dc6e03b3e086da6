"""The pages of the project tell the truth: what they name exists, and they are not too long."""

import ast
import re
import tomllib
from functools import cache

import pytest
import typer
from tests.architecture.pages import PAGES, ROOT, SOURCE, code, links, name_of, spans, text_of

from billfold.cli.app import build_app
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import declared_settings, variable_name
from billfold.wiring.cli_context import Wiring

LONGEST = {"README.md": 120, "ARCHITECTURE.md": 250, "STYLE.md": 150}
ADR_SECTIONS = ["Context", "Decision", "Consequences", "Alternatives"]
ADRS = [page for page in PAGES if page.parent.name == "adr"]
MADE_WHILE_RUNNING = (".venv/", ".uv/", ".billfold/")
MADE_BY_OTHERS = frozenset({"ca.pem"})
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]

_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+/?|[\w-]+\.(?:py|md|sql|toml|lock|csv|json)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"(?:^|\s|/)billfold ((?:[a-z-]+)(?: .*)?)$")
_RECIPE = re.compile(r"\bmake ([a-z]+)\b")
_VARIABLE = re.compile(r"\bBILLFOLD_[A-Z_]+\b")


@pytest.mark.parametrize("page", LONGEST)
def test_a_page_is_as_long_as_people_read(page):
    assert text_of(page).count("\n") <= LONGEST[page]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert [to for to in links(page) if not (page.parent / to).exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_paths_that_are_named_exist(page):
    named = [span for span in spans(page) if _PATH.fullmatch(span)]
    assert [path for path in named if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_that_are_named_exist(page):
    called = [found[1] for line in code(page) if (found := _CALL.search(line))]
    assert [words for words in called if not is_a_command(words)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_recipes_that_are_named_exist(page):
    recipes = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert {name for line in code(page) for name in _RECIPE.findall(line)} <= recipes


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_that_are_named_exist(page):
    known = {variable_name(name) for name in declared_settings()}
    named = {name.removesuffix("_FILE") for name in _VARIABLE.findall(page.read_text())}
    assert named - {"BILLFOLD_"} <= known


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "STYLE.md"])
def test_names_of_code_exist(name):
    named = {span.removesuffix("()") for span in spans(ROOT / name)}
    named |= {part for span in named if "." in span for part in span.split(".")}
    unknown = {each for each in named if _NAME.fullmatch(each)} - all_words()
    parts = {each for each in unknown if each.startswith("_") or each.endswith("_")}
    assert {each for each in unknown if each not in parts} == set()
    assert all(any(each in word for word in all_words()) for each in parts)


@pytest.mark.parametrize("page", ADRS, ids=name_of)
def test_a_decision_has_a_number_a_status_and_all_its_parts(page):
    text = page.read_text()
    assert re.match(rf"# {page.name[:4]}\. .+\n\nStatus: \w+", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ADR_SECTIONS
    assert text.count("\n") <= 80


def test_decisions_are_numbered_without_a_gap():
    assert [int(page.name[:4]) for page in ADRS] == list(range(1, len(ADRS) + 1))


def test_the_readme_has_python_that_is_python():
    blocks = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.MULTILINE | re.DOTALL)
    assert blocks
    assert all(ast.parse(block) for block in blocks)


def test_the_licence_is_the_one_that_is_named():
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
def test_a_command_is_known_by_its_words(words, there):
    assert is_a_command(words) is there


def exists(path):
    """Is it below the root, the package or docs, or a file of the package's own?"""
    if path.startswith(MADE_WHILE_RUNNING) or "NNNN" in path:
        return True
    if "/" not in path:
        return (ROOT / path).exists() or any(SOURCE.rglob(path)) or path in MADE_BY_OTHERS
    return any(list(base.glob(path.rstrip("/"))) for base in (ROOT, SOURCE, ROOT / "docs"))


def is_a_command(words):
    """Do these words name a command of ours, and their options belong to it?"""
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
    """The whole command line."""
    return typer.main.get_command(build_app(Wiring({})))


@cache
def all_words():
    """Every word of the sources, the schema and what surrounds them."""
    files = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql"), *(ROOT / "tests").rglob("*.py")]
    texts = [path.read_text() for path in files]
    texts += [text_of("pyproject.toml"), text_of("Makefile"), *PROBLEMS]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def test_tests_that_are_named_exist():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"def (test_\w+)\(", tests))
    named = {span for page in PAGES for span in spans(page) if re.fullmatch(r"test_\w+", span)}
    assert named - known == set()
