"""Which pages stand together, and in which order: what to learn, to do, to understand, to look up."""

from functools import partial

from billfold.documentation.markdown import title_of
from billfold.documentation.sources import list_sources, read_source
from billfold.documentation.types import Group, Page

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
