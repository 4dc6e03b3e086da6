"""The site: every page under its path, where it stands among the others, and what all of them say."""

from collections.abc import Sequence
from functools import cached_property
from posixpath import join, normpath
from typing import NamedTuple
from urllib.parse import urlsplit

from rapidfuzz import fuzz, process

from billfold.documentation.markdown import Link
from billfold.documentation.search import SearchIndex
from billfold.documentation.types import Book, Group, Page

_REDIRECTS = {"/docs/reference/errors": "/docs/errors", "/docs/reference/events": "/docs/events"}
FILES = ("/docs/llms.txt", "/docs/llms-full.txt")
"""Addresses of the site that are no pages."""
_SUGGESTIONS = 5


class Place(NamedTuple):
    """Where a page stands: its book, and the pages before and after it."""

    book: Book
    previous: Page | None
    following: Page | None


class Site:
    """The pages of some books. Nothing is rendered before it is read."""

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
        """Return the page at a path without a slash at its end."""
        return self._places.get(path)

    def find_redirect(self, path: str) -> str | None:
        """Return where a page that was at this path is now."""
        return _REDIRECTS.get(path)

    def navigation(self, book: Book) -> Sequence[Group]:
        """Return what is shown beside the pages of a book."""
        return book.navigation or book.groups

    def find_link(self, page: Page, href: str) -> Link | None:
        """Return what a link on a page leads to, or None if that is not on the site."""
        parts = urlsplit(href)
        if parts.scheme or parts.netloc:
            return None
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if not parts.path:
            return Link(fragment, page.title)
        path = normpath(join(page.folder, parts.path))
        if path in FILES or path.endswith("/openapi.json"):
            return Link(path, path)
        path = path.removesuffix(".md").removesuffix("/index")
        found = self._places.get(_REDIRECTS.get(path, path))
        return Link(found[0].path + fragment, found[0].title) if found else None

    def suggest(self, path: str) -> list[Page]:
        """Return the pages whose paths are most like one where there is none."""
        found = process.extract(path, self._places.keys(), scorer=fuzz.WRatio, limit=_SUGGESTIONS, score_cutoff=60)
        return [self._places[each][0] for each, *_ in found]

    @cached_property
    def index(self) -> SearchIndex:
        """What the site is searched by."""
        return SearchIndex(self.pages)

    @cached_property
    def llms_index(self) -> str:
        """Every page by title and address, for programs that read (llmstxt.org)."""
        lines = ["# Documentation", "", "> Every page is Markdown under its address with `.md` at the end.", ""]
        for book in self.books:
            lines += [f"## {book.title}", ""]
            lines += [f"- [{each.title}]({each.path}.md)" for group in book.groups for each in group.pages]
            lines.append("")
        return "\n".join(lines)

    @cached_property
    def llms_full(self) -> str:
        """All pages in one text."""
        return "\n".join(f"<!-- {each.path} -->\n\n{each.markdown()}" for each in self.pages)
