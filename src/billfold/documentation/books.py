"""The books of the site: what is written, what is made from the code, and a reference for each API.

Markdown comes from `docs` and the changelog of a checkout, or from their copies in an installed package.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from billfold.documentation.generated import event_index, event_pages, problem_index, problem_pages, yield_page
from billfold.documentation.markdown import title_of
from billfold.documentation.operation_pages import api_book
from billfold.documentation.site import Book, Group, Page
from billfold.events.kinds import KINDS
from billfold.platform.problems import PROBLEMS

_CHECKOUT = Path(__file__).parents[3]


def read_source(name: str) -> str:
    """Return the text of a file by its name below `docs`, or of `CHANGELOG.md`."""
    found = _installed().joinpath(name) if _installed().is_dir() else _in_checkout(name)
    return found.read_text(encoding="utf-8")


@cache
def list_sources() -> tuple[str, ...]:
    """Return the names of all Markdown files, in the order of their names."""
    root = _installed() if _installed().is_dir() else _CHECKOUT / "docs"
    return tuple(sorted(_below(root, "")))


def _installed() -> Traversable:
    return files(__package__).joinpath("content")


def _in_checkout(name: str) -> Path:
    return _CHECKOUT / name if name == "CHANGELOG.md" else _CHECKOUT / "docs" / name


def _below(folder: Traversable, prefix: str) -> list[str]:
    found = []
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            found += _below(each, f"{name}/")
        elif name.endswith(".md"):
            found.append(name)
    return found


_CHANGELOG = "CHANGELOG.md"
_HOME = "index.md"
_REST = "*"
"""Every page of a folder that is not named in any group."""
_MADE_FROM_CODE = ("reference/errors.md", "reference/events.md")
"""The site has a page for each error and event instead."""
_GROUPS = {
    "Start": (_HOME, "tutorial.md", "sandbox_limits.md"),
    "Guides": ("guides/run_the_samples.md", "guides/sign_a_request.md", "guides/webhooks.md", f"guides/{_REST}"),
    "Concepts": ("domain/tbill_maths.md", "domain/earnings.md", f"domain/{_REST}"),
    "Operate": ("operate/install.md", "operate/configuration.md", f"operate/{_REST}"),
    "Reference": ("domain/glossary.md", f"reference/{_REST}", _CHANGELOG),
    "Contribute": ("guides/add_a_part.md", "guides/add_an_operation.md", "security.md", "benchmarks.md"),
    "Decisions": (f"adr/{_REST}",),
}


def written_groups() -> list[Group]:
    """Return the pages that are written by hand, in their groups."""
    return [Group(title, [_page(name) for name in _expanded(names)]) for title, names in _GROUPS.items()]


def _expanded(names: tuple[str, ...]) -> list[str]:
    named = {name for group in _GROUPS.values() for name in group}
    found: list[str] = []
    for name in names:
        folder = name.removesuffix(_REST)
        if folder == name:
            found.append(name)
            continue
        rest = [each for each in list_sources() if each.startswith(folder) and each not in {*named, *_MADE_FROM_CODE}]
        found += rest if folder == "adr/" else sorted(rest, key=lambda each: title_of(read_source(each)))
    return found


def _page(name: str) -> Page:
    if name == _CHANGELOG:
        # Its links start at the root of the project.
        return Page(path="/docs/changelog", title="Changelog", text=partial(read_source, name), base="/")
    path = "/docs" if name == _HOME else f"/docs/{name.removesuffix('.md')}"
    base = "/docs" if name == _HOME else ""
    return Page(path=path, title=title_of(read_source(name)), text=partial(read_source, name), base=base)


Documents = Mapping[str, Callable[[], Mapping[str, Any]]]
"""The OpenAPI document of each API by the name it has in addresses."""


def make_books(documents: Documents) -> Sequence[Book]:
    """Return every book."""
    made = {"Concepts": [yield_page()], "Reference": [problem_index(PROBLEMS.values()), event_index(KINDS.values())]}
    groups = [Group(each.title, [*made.get(each.title, ()), *each.pages]) for each in written_groups()]
    return [
        Book("Documentation", groups),
        *(api_book(name, msgspec.to_builtins(document())) for name, document in documents.items()),
        Book("", [Group("Errors", problem_pages(PROBLEMS.values()))], navigation=groups),
        Book("", [Group("Events", event_pages(KINDS.values()))], navigation=groups),
    ]
