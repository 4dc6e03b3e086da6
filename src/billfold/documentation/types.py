"""What the site consists of: pages, in groups, in books."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import NamedTuple


class Sample(NamedTuple):
    """A block of code beside a page: what it is, its language as highlighters call it, and the code."""

    label: str
    language: str
    code: str


class Samples(NamedTuple):
    """Blocks that show the same, of which a reader sees one at a time."""

    title: str
    variants: Sequence[Sample]


class FormField(NamedTuple):
    """A field by which a reader chooses what a page computes; with choices of (value, label) it is a list."""

    name: str
    label: str
    value: str
    type: str = "text"
    choices: Sequence[tuple[str, str]] = ()


def _no_samples() -> Sequence[Samples]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its Markdown, made when it is read, and where it is.

    `base` is the folder that its relative links start from; as a rule that of its path.
    """

    path: str
    title: str
    text: Callable[[], str]
    samples: Callable[[], Sequence[Samples]] = _no_samples
    base: str = ""
    form: Sequence[FormField] = ()
    kind: str = ""
    """What stands before its title where it is found: a method of HTTP, a status."""

    @property
    def folder(self) -> str:
        """Where its relative links start."""
        return self.base or dirname(self.path)

    def markdown(self) -> str:
        """Return the whole page as Markdown, its samples at the end."""
        blocks = [
            f"## {each.title}\n\n"
            + "".join(f"{_label(variant)}```{variant.language}\n{variant.code}\n```\n\n" for variant in each.variants)
            for each in self.samples()
        ]
        return "\n".join([self.text().rstrip() + "\n", *blocks]).rstrip() + "\n"


def _label(sample: Sample) -> str:
    return f"{sample.label}:\n\n" if sample.label else ""


class Group(NamedTuple):
    """Pages under one heading of the navigation."""

    title: str
    pages: Sequence[Page]


class Book(NamedTuple):
    """Groups that a reader leafs through from the first page to the last.

    `navigation` is shown beside its pages where that is not all of them.
    """

    title: str
    groups: Sequence[Group]
    navigation: Sequence[Group] = ()
