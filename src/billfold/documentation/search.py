"""Full-text search over the sections of all pages: every word of the query must be there, titles count most."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from billfold.documentation.markdown import anchor_of, without_comments
from billfold.documentation.types import Page

_FENCE = re.compile(r"^```")
_HEADING = re.compile(r"^#{1,3} (.+)$")
_MARKUP = re.compile(r"[`*|#>]+|\]\([^)]*\)|\[|-{3,}")
_WORD = re.compile(r"\w+")
_QUERY_WORDS_MAX = 8
_RESULTS_MAX = 30
_EXCERPT_BEFORE, _EXCERPT_CHARS = 60, 220
_TITLE_SCORE, _HEADING_SCORE, _TEXT_SCORE, _TEXT_COUNT_MAX = 20, 8, 1, 5


class Section(NamedTuple):
    """A part of a page under one heading."""

    page: Page
    heading: str
    anchor: str
    text: str

    @property
    def address(self) -> str:
        """Where it is."""
        return self.page.path + (f"#{self.anchor}" if self.anchor else "")


class Result(NamedTuple):
    """A section in which all words were found, and a piece of its text around the first."""

    section: Section
    excerpt: str


class SearchIndex:
    """The sections of some pages."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._sections = [(each, _folded(each)) for page in pages for each in _sections_of(page)]

    def search(self, query: str) -> list[Result]:
        """Return where all words of a query are found, the best first."""
        words = _WORD.findall(query.lower())[:_QUERY_WORDS_MAX]
        if not words:
            return []
        found = [(score, each) for each, folded in self._sections if (score := _score(folded, words))]
        found.sort(key=lambda one: (-one[0], one[1].address))
        return [Result(each, _excerpt(each.text, words)) for _, each in found[:_RESULTS_MAX]]

    def titles(self) -> list[tuple[str, str, str]]:
        """Return (address, title, heading) of every section, for the script that searches while one types."""
        return [(each.address, each.page.title, each.heading) for each, _ in self._sections]


class _Folded(NamedTuple):
    title: str
    heading: str
    text: str


def _folded(section: Section) -> _Folded:
    return _Folded(
        f"{section.page.title} {section.page.path.rpartition('/')[2]}".lower(),
        section.heading.lower(),
        section.text.lower(),
    )


def _score(section: _Folded, words: list[str]) -> int:
    """Return how well a section fits; 0 if a word is missing."""
    total = 0
    for word in words:
        score = _TITLE_SCORE * (word in section.title and not section.heading) + _HEADING_SCORE * (
            word in section.heading
        )
        score += _TEXT_SCORE * min(section.text.count(word), _TEXT_COUNT_MAX)
        if not score and word not in section.title:
            return 0
        total += score
    return total


def _sections_of(page: Page) -> Iterator[Section]:
    heading, lines, is_code = "", list[str](), False
    for line in without_comments(page.markdown()).splitlines():
        is_code ^= bool(_FENCE.match(line))
        found = None if is_code else _HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        if found[0].startswith("# "):
            continue
        yield _section(page, heading, lines)
        heading, lines = found[1].replace("`", ""), []
    yield _section(page, heading, lines)


def _section(page: Page, heading: str, lines: Iterable[str]) -> Section:
    text = " ".join(_MARKUP.sub(" ", "\n".join(lines)).split())
    return Section(page, heading, anchor_of(heading), text)


def _excerpt(text: str, words: list[str]) -> str:
    folded = text.lower()
    first = min((place for word in words if (place := folded.find(word)) >= 0), default=0)
    start = max(0, first - _EXCERPT_BEFORE)
    excerpt = text[start : start + _EXCERPT_CHARS]
    return ("… " if start else "") + excerpt + (" …" if start + _EXCERPT_CHARS < len(text) else "")
