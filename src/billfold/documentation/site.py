"""The site: pages, in groups, in books; each at its path, and a full-text search over all their sections.

In a search every word of the query must be found; titles count most.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import urlsplit

from rapidfuzz import fuzz, process

from billfold.documentation.markdown import Link, anchor_of, without_comments
from billfold.documentation.operations import ApiOperation

_OF_DOCUMENTS = ("/openapi.json", "/postman.json", "/bruno.zip", "/requests.http")


class Sample(NamedTuple):
    """A block of code next to a page: what it is, its language as highlighters call it, and the code."""

    label: str
    language: str
    code: str


class Samples(NamedTuple):
    """Alternative blocks of code, of which a reader sees one at a time."""

    title: str
    variants: Sequence[Sample]
    note: str = ""


class FormField(NamedTuple):
    """An input by which a reader chooses what a page computes; with choices of (value, label) it is a list."""

    name: str
    label: str
    value: str
    type: str = "text"
    choices: Sequence[tuple[str, str]] = ()


def _no_samples() -> Sequence[Samples]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its address, and its Markdown, which is created when it is read.

    `base` is the folder of its relative links; by default that of its path.
    """

    path: str
    title: str
    text: Callable[[], str]
    samples: Callable[[], Sequence[Samples]] = _no_samples
    operation: ApiOperation | None = None
    """The operation that it describes."""
    base: str = ""
    form: Sequence[FormField] = ()
    kind: str = ""
    """A label shown before its title in lists: an HTTP method, a status."""

    @property
    def folder(self) -> str:
        """The folder of its relative links."""
        return self.base or dirname(self.path)

    def markdown(self) -> str:
        """Return the whole page as Markdown, its samples at the end."""
        blocks = [
            "\n\n".join(filter(None, [f"## {each.title}", each.note]))
            + "\n\n"
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
    """Groups of pages in reading order.

    `navigation` is shown next to its pages where that is not all of them.
    """

    title: str
    groups: Sequence[Group]
    navigation: Sequence[Group] = ()


_FENCE = re.compile(r"^```")
_HEADING = re.compile(r"^#{1,3} (.+)$")
_MARKUP = re.compile(r"[`*|#>]+|\]\([^)]*\)|\[|-{3,}")
_WORD = re.compile(r"\w+")
_QUERY_WORDS_MAX = 8
_ALIKE, _ALIKE_MIN = 5, 70
"""How many words a misspelled one may stand for, and the percentage of letters that they share."""
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
        """The address of the section."""
        return self.page.path + (f"#{self.anchor}" if self.anchor else "")


class Result(NamedTuple):
    """A section that contains all words, and an excerpt around the first one."""

    section: Section
    excerpt: str


class SearchIndex:
    """The sections of some pages."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._sections = [(each, _folded(each)) for page in pages for each in _sections_of(page)]
        self._vocabulary = sorted({word for _, folded in self._sections for word in _WORD.findall(" ".join(folded))})

    def search(self, query: str) -> list[Result]:
        """Return the sections that contain all words of a query, best first; for a word that none has, one like it."""
        words = [self._spelled(each) for each in _WORD.findall(query.lower())[:_QUERY_WORDS_MAX]]
        if not words:
            return []
        found = [(score, each) for each, folded in self._sections if (score := _score(folded, words))]
        found.sort(key=lambda one: (-one[0], one[1].address))
        return [
            Result(each, _excerpt(each.text, [one for spellings in words for one in spellings]))
            for _, each in found[:_RESULTS_MAX]
        ]

    def _spelled(self, word: str) -> list[str]:
        """Return a word, or those like it if no page has it."""
        if any(word in each for each in self._vocabulary):
            return [word]
        found = process.extract(word, self._vocabulary, scorer=fuzz.ratio, limit=_ALIKE, score_cutoff=_ALIKE_MIN)
        return [each for each, *_ in found]

    def titles(self) -> list[tuple[str, str, str]]:
        """Return (address, title, heading) of every section, for search as you type."""
        return [(each.address, each.page.title, each.heading) for each, _ in self._sections]


class _SearchableText(NamedTuple):
    title: str
    heading: str
    text: str


def _folded(section: Section) -> _SearchableText:
    return _SearchableText(
        f"{section.page.title} {section.page.path.rpartition('/')[2]}".lower(),
        section.heading.lower(),
        section.text.lower(),
    )


def _score(section: _SearchableText, words: Iterable[Iterable[str]]) -> int:
    """Return a section's relevance; 0 if it has no spelling of a word."""
    total = 0
    for spellings in words:
        scores = [_score_of_word(section, each) for each in spellings]
        if not any(scores):
            return 0
        total += max(scores)
    return total


def _score_of_word(section: _SearchableText, word: str) -> int:
    in_title = word in section.title
    score = _TITLE_SCORE * (in_title and not section.heading) + _HEADING_SCORE * (word in section.heading)
    return score + in_title + _TEXT_SCORE * min(section.text.count(word), _TEXT_COUNT_MAX)


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


_REDIRECTS = {"/docs/reference/errors": "/docs/errors", "/docs/reference/events": "/docs/events"}
FILES = ("/docs/llms.txt",)
"""Addresses on the site that are not pages."""
_SUGGESTIONS = 5
_FULL_TEXT_BYTES_MAX = 200_000


class Place(NamedTuple):
    """The position of a page: its book, and the pages before and after it."""

    book: Book
    previous: Page | None
    following: Page | None


class Site:
    """The pages of some books. Nothing is rendered until it is read."""

    def __init__(self, books: Sequence[Book]) -> None:
        self.books = books
        self._places: dict[str, tuple[Page, Place]] = {}
        for book in books:
            pages = [page for group in book.groups for page in group.pages]
            for page, previous, following in zip(pages, [None, *pages], [*pages[1:], None], strict=False):
                self._places[page.path] = (page, Place(book, previous, following))

    @property
    def pages(self) -> list[Page]:
        """Every page, in the order of the books."""
        return [page for page, _ in self._places.values()]

    def find(self, path: str) -> tuple[Page, Place] | None:
        """Return the page at a path without a trailing slash."""
        return self._places.get(path)

    def find_redirect(self, path: str) -> str | None:
        """Return the new path of a page that was at this path."""
        return _REDIRECTS.get(path)

    def navigation(self, book: Book) -> Sequence[Group]:
        """Return what is shown next to the pages of a book."""
        return book.navigation or book.groups

    def find_link(self, page: Page, href: str) -> Link | None:
        """Return the target of a link on a page, or None if it is not on the site."""
        parts = urlsplit(href)
        if parts.scheme or parts.netloc:
            return None
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if not parts.path:
            return Link(fragment, page.title)
        path = normpath(join(page.folder, parts.path))
        if path in FILES or path.endswith(_OF_DOCUMENTS):
            return Link(path, path)
        path = path.removesuffix(".md").removesuffix("/index")
        found = self._places.get(_REDIRECTS.get(path, path))
        return Link(found[0].path + fragment, found[0].title) if found else None

    def suggest(self, path: str) -> list[Page]:
        """Return the pages with the most similar paths, for a path that does not exist."""
        found = process.extract(path, self._places.keys(), scorer=fuzz.WRatio, limit=_SUGGESTIONS, score_cutoff=60)
        return [self._places[each][0] for each, *_ in found]

    @cached_property
    def index(self) -> SearchIndex:
        """The search index of the site."""
        return SearchIndex(self.pages)

    @cached_property
    def llms_index(self) -> str:
        """Every page by title and address, for language models (llmstxt.org)."""
        lines = ["# Documentation", "", "> Every page is Markdown under its address with `.md` at the end.", ""]
        lines += ["## Full texts", "", *(f"- [{name}](/docs/llms/{name}.txt)" for name in self.full_texts), ""]
        for book in self.books:
            lines += [f"## {book.title}", ""]
            lines += [f"- [{each.title}]({each.path}.md)" for group in book.groups for each in group.pages]
            lines.append("")
        return "\n".join(lines)

    @cached_property
    def full_texts(self) -> dict[str, str]:
        """The text of all pages by name, each as long as a language model reads at once: `partner-api-1`."""
        found: dict[str, str] = {}
        for book in self.books:
            name, number, size = anchor_of(book.title or book.groups[0].title), 1, 0
            for page in (each for group in book.groups for each in group.pages):
                text = f"<!-- {page.path} -->\n\n{page.markdown()}\n"
                length = len(text.encode())
                if size + length > _FULL_TEXT_BYTES_MAX:
                    number, size = number + 1, 0
                found[f"{name}-{number}"] = found.get(f"{name}-{number}", "") + text
                size += length
        return found
