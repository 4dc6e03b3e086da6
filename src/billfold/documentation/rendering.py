"""Pages as HTML: the frame, the navigation, samples beside the text."""

from __future__ import annotations

import json
from functools import cached_property
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from billfold import web as pages
from billfold.documentation.markdown import highlighted, render
from billfold.documentation.site import Place, Site
from billfold.documentation.types import Page, Sample
from billfold.pages.theme import MEDIA_TYPES, Theme

__all__ = ["MEDIA_TYPES", "Renderer"]


class Renderer:
    """Turns the pages of a site into HTML, in the name of the bank."""

    def __init__(self, site: Site, bank_name: str, *, tries_at: str | None = None) -> None:
        self._site = site
        self._templates = Environment(
            loader=ChoiceLoader([PackageLoader(__package__ or ""), PackageLoader(pages.__name__)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"bank_name": bank_name, "books": site.books, "query": "", "tries_at": tries_at}
        self._templates.globals["static_path"] = "/docs/files"
        self._templates.filters["code"] = _code
        self.files = _static_files(bank_name)

    @cached_property
    def search_titles(self) -> str:
        """What the script searches while one types, as JSON."""
        return json.dumps(self._site.index.titles(), ensure_ascii=False, separators=(",", ":"))

    def page(self, page: Page, place: Place) -> str:
        """Return a page of the site."""
        rendered = render(page.text(), lambda href: self._site.find_link(page, href))
        title, end, body = rendered.html.partition("</h1>\n")
        return self._template(
            "page",
            page=page,
            place=place,
            groups=self._site.navigation(place.book),
            heading=Markup(title + end),  # noqa: S704 - the renderer escapes what is no Markdown
            body=Markup(body),  # noqa: S704 - as above
            contents=rendered.contents,
            samples=page.samples(),
        )

    def search(self, query: str) -> str:
        """Return the results of a search."""
        results = self._site.index.search(query)
        return self._template("search", query=query, results=results, groups=self._site.books[0].groups)

    def not_found(self, path: str) -> str:
        """Return what is said where there is no page."""
        words = " ".join(path.rpartition("/")[2].replace("-", " ").replace("_", " ").split())
        suggestions = self._site.suggest(path)
        return self._template("not_found", suggestions=suggestions, words=words, groups=self._site.books[0].groups)

    def _template(self, name: str, **facts: Any) -> str:
        return self._templates.get_template(f"{name}.html").render(facts)


def _code(sample: Sample) -> Markup:
    return Markup(highlighted(sample.code, sample.language))  # noqa: S704 - the highlighter escapes


def _static_files(bank_name: str) -> dict[str, bytes]:
    """Return the files of the site, with those of the bank's other pages."""
    own = {file.name: file.read_bytes() for file in files(__package__).joinpath("static").iterdir()}
    return Theme(bank_name).files | own
