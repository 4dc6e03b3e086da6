"""The documentation site as an ASGI application: pages as HTML, the navigation, samples next to the text.

The response depends only on the address: rendered pages are cached, and a browser asks by ETag whether
its copy is still current. Rendering runs in one thread, so payments of the same process do not wait for it, however
many pages are read at once.

Markdown comes from `docs` and the changelog of a checkout, or from their copies in an installed package.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from billfold import pages
from billfold.documentation import generated, operation_pages
from billfold.documentation.collections import COLLECTIONS, with_samples
from billfold.documentation.generated import event_index, event_pages, problem_index, problem_pages, yield_page
from billfold.documentation.markdown import highlighted, render, title_of
from billfold.documentation.operations import ApiOperation
from billfold.documentation.samples import OwnCall, samples_of
from billfold.documentation.site import Book, Group, Page, Place, Sample, Site
from billfold.events.kinds import KINDS
from billfold.http.edge import EdgeMiddleware, name_of
from billfold.http.raw_request import RawRequest, Receive, Scope, Send, raw_request_of
from billfold.http.responses import JSON, TEXT, HttpResponse, ProblemWithHeaders, etag_of, has_current
from billfold.pages.fonts import web_font
from billfold.pages.theme import MEDIA_TYPES, Theme, page_headers
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import Settings

_CHECKOUT = Path(__file__).parents[3]


def read_source(name: str) -> str:
    """Return the text of a file by its name below `docs`, or of `CHANGELOG.md`."""
    found = _installed().joinpath(name) if _installed().is_dir() else _in_checkout(name)
    return found.read_text(encoding="utf-8")


@cache
def list_sources() -> tuple[str, ...]:
    """Return the names of all Markdown files, sorted."""
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
"""Every page of a folder that no group names."""
_MADE_FROM_CODE = ("reference/errors.md", "reference/events.md")
"""The site has a page for each error and event instead."""
_GROUPS = {
    "Start": (_HOME, "tutorial.md", "sandbox_limits.md"),
    "Guides": ("guides/run_the_samples.md", "guides/sign_a_request.md", "guides/webhooks.md", f"guides/{_REST}"),
    "Concepts": ("domain/tbill_maths.md", "domain/earnings.md", f"domain/{_REST}"),
    "Operate": ("operate/install.md", "operate/configuration.md", f"operate/{_REST}"),
    "Reference": ("domain/glossary.md", f"reference/{_REST}", _CHANGELOG),
    "Contribute": (
        "guides/add_a_part.md",
        "guides/add_an_operation.md",
        "security.md",
        "reliability.md",
        "benchmarks.md",
    ),
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
        # Its links are relative to the root of the project.
        return Page(path="/docs/changelog", title="Changelog", text=partial(read_source, name), base="/")
    path = "/docs" if name == _HOME else f"/docs/{name.removesuffix('.md')}"
    base = "/docs" if name == _HOME else ""
    return Page(path=path, title=title_of(read_source(name)), text=partial(read_source, name), base=base)


Documents = Mapping[str, Callable[[], Mapping[str, Any]]]
"""The OpenAPI document of each API, by its name in addresses."""


def make_books(documents: Documents) -> Sequence[Book]:
    """Return every book."""
    made = {"Concepts": [yield_page()], "Reference": [problem_index(PROBLEMS.values()), event_index(KINDS.values())]}
    groups = [Group(each.title, [*made.get(each.title, ()), *each.pages]) for each in written_groups()]
    return [
        Book("Documentation", groups),
        *(operation_pages.api_book(name, msgspec.to_builtins(document())) for name, document in documents.items()),
        Book("", [Group("Errors", problem_pages(PROBLEMS.values()))], navigation=groups),
        Book("", [Group("Events", event_pages(KINDS.values()))], navigation=groups),
    ]


class Renderer:
    """Renders the pages of a site as HTML, with the bank's name."""

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
        """The search index for the script, as JSON."""
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
            heading=Markup(title + end),  # noqa: S704 - the renderer escapes everything but Markdown
            body=Markup(body),  # noqa: S704 - as above
            contents=rendered.contents,
            samples=page.samples(),
        )

    def search(self, query: str) -> str:
        """Return the results of a search."""
        results = self._site.index.search(query)
        return self._template(
            "search", query=query, results=results, book_of=self._book_of, groups=self._site.books[0].groups
        )

    def _book_of(self, page: Page) -> str:
        found = self._site.find(page.path)
        return found[1].book.title if found else ""

    def not_found(self, path: str) -> str:
        """Return the page for an address that does not exist."""
        words = " ".join(path.rpartition("/")[2].replace("-", " ").replace("_", " ").split())
        suggestions = self._site.suggest(path)
        return self._template("not_found", suggestions=suggestions, words=words, groups=self._site.books[0].groups)

    def _template(self, name: str, **facts: Any) -> str:
        return self._templates.get_template(f"{name}.html").render(facts)


def _code(sample: Sample) -> Markup:
    return Markup(highlighted(sample.code, sample.language))  # noqa: S704 - the highlighter escapes


def _static_files(bank_name: str) -> dict[str, bytes]:
    """Return the files of the site, and those of the bank's other pages."""
    own = {file.name: file.read_bytes() for file in files(__package__).joinpath("static").iterdir()}
    return Theme(bank_name).files | own


_OF_PROXIES = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip")
OwnValues = Callable[[ApiOperation, str], Awaitable[OwnCall | None]]
"""Returns the call of an operation with the values of a sandbox, for a client's address."""
ROOT = "/docs"
HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
_ALLOWED = (b"allow", b"GET, HEAD, OPTIONS")
_KEPT_PAGES = 256
_QUERY_CHARS_MAX = 200
_REVALIDATED = (b"cache-control", b"no-cache")
_PAGE_HEADERS = [(name.encode(), value.encode()) for name, value in page_headers().items()]


class DocumentationApp:
    """The site of one process. The OpenAPI documents are built when the first page is read.

    In a sandbox, `tries_at` is the origin of the pages on which operations can be tried, and `own_values` fills in
    the samples.
    """

    def __init__(
        self,
        settings: Settings,
        documents: Documents,
        *,
        tries_at: str | None = None,
        own_values: OwnValues | None = None,
    ) -> None:
        self._settings, self._documents = settings, documents
        self._tries_at, self._own_values = tries_at, own_values
        self._edge = EdgeMiddleware(self._serve, settings)
        self._rendered = lru_cache(_KEPT_PAGES)(self._render)
        self._thread = ThreadPoolExecutor(1, "documentation")

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ANN401
        """Serve one request."""
        await self._edge(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Stop the rendering thread at shutdown."""
        yield
        self._thread.shutdown()

    @cached_property
    def site(self) -> Site:
        """The pages."""
        return Site(make_books(self._documents))

    @cached_property
    def _renderer(self) -> Renderer:
        return Renderer(self.site, self._settings.bank_name, tries_at=self._tries_at)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - a body is not read
        request = raw_request_of(scope)
        own = await self._find_own(request) if self._own_values else None
        response = await asyncio.get_running_loop().run_in_executor(self._thread, self._respond, request, own)
        await response.send(send)

    async def _find_own(self, request: RawRequest) -> OwnCall | None:
        """Return the call that a page shows with the values of this sandbox; None on other pages."""
        path = request.path.rstrip("/").removesuffix(".md")
        if self._own_values is None or not path.startswith(f"{ROOT}/api/") or not self._is_read_here(request):
            return None
        found = await asyncio.get_running_loop().run_in_executor(self._thread, lambda: self.site.find(path))
        operation = found and found[0].operation
        return await self._own_values(operation, request.client) if operation else None

    def _is_read_here(self, request: RawRequest) -> bool:
        """Tell whether somebody reads a page under a name of this sandbox, without a proxy or another site between."""
        host = name_of((request.header(b"host") or "").lower())
        is_own = host in {"localhost", "127.0.0.1", "[::1]"} or f".{host}".endswith(f".{self._settings.domain}")
        is_passed_on = any(request.header(each) for each in _OF_PROXIES)
        is_foreign = request.header(b"sec-fetch-site") in {"cross-site", "same-site"}
        return request.method == "GET" and is_own and not is_passed_on and not is_foreign

    def _respond(self, request: RawRequest, own: OwnCall | None) -> HttpResponse:
        if request.method == "OPTIONS":
            return HttpResponse(204, TEXT, headers=[_ALLOWED])
        if request.method not in {"GET", "HEAD"}:
            detail = f"{request.method} is not allowed here; use GET."
            raise ProblemWithHeaders("method-not-allowed", detail, _ALLOWED)
        path = request.path.rstrip("/")
        query = request.query_values
        if path == f"{ROOT}/search":
            return _html(200, self._renderer.search(query.get("q", [""])[-1][:_QUERY_CHARS_MAX]))
        if path == generated.PATH and query:
            return self._computed(query)
        return _never_stored(self._page(path, own)) if own else _revalidated(request, self._rendered(path))

    def _computed(self, query: Mapping[str, Sequence[str]]) -> HttpResponse:
        """Return the yield page for the deposit that a reader chose."""
        found = self.site.find(generated.PATH)
        assert found is not None
        page = generated.yield_page(generated.parse_deposit(query))
        return _html(200, self._renderer.page(page, found[1]))

    def _render(self, path: str) -> HttpResponse:
        """Return the response for a path without a trailing slash, the same for everybody."""
        name = path.removeprefix(f"{ROOT}/")
        if name.startswith("files/"):
            content = self._renderer.files.get(name.removeprefix("files/")) or web_font(name.removeprefix("files/"))
            return self._not_found(path) if content is None else HttpResponse(200, _media_type(name), content)
        if (made := self._collection(name)) is not None:
            return made
        texts: dict[str, tuple[str, Callable[[], str]]] = {
            "search.json": (JSON, lambda: self._renderer.search_titles),
            "llms.txt": (TEXT, lambda: self.site.llms_index),
            "/llms.txt": (TEXT, lambda: self.site.llms_index),
            **{
                f"api/{api}/openapi.json": (JSON, partial(_as_json, api, make)) for api, make in self._documents.items()
            },
        }
        if name.startswith("llms/"):
            text = self.site.full_texts.get(name.removeprefix("llms/").removesuffix(".txt"))
            return self._not_found(path) if text is None else HttpResponse(200, MARKDOWN, text.encode())
        if name in texts:
            media_type, make = texts[name]
            return HttpResponse(200, media_type, make().encode())
        return self._page(path)

    def _collection(self, path: str) -> HttpResponse | None:
        """Return the operations of an API as a file for an HTTP client."""
        api, _, name = path.removeprefix("api/").partition("/")
        for file, media_type, make in COLLECTIONS.values():
            if name == file and api in self._documents:
                return HttpResponse(200, media_type, make(api, self._documents[api]()))
        return None

    def _page(self, path: str, own: OwnCall | None = None) -> HttpResponse:
        is_markdown = path.endswith(".md")
        path = path.removesuffix(".md").removesuffix("/index")
        moved = self.site.find_redirect(path)
        if moved is not None:
            return HttpResponse(308, TEXT, headers=[(b"location", (moved + ".md" * is_markdown).encode())])
        found = self.site.find(path)
        if found is None:
            return self._not_found(path)
        page, place = found
        if own:
            page = replace(page, samples=partial(samples_of, own.call.operation, own))
        if is_markdown:
            return HttpResponse(200, MARKDOWN, page.markdown().encode())
        return _html(200, self._renderer.page(page, place))

    def _not_found(self, path: str) -> HttpResponse:
        return _html(404, self._renderer.not_found(path))


def _as_json(api: str, make_document: Callable[[], Mapping[str, Any]]) -> str:
    return msgspec.json.format(msgspec.json.encode(with_samples(api, make_document())), indent=2).decode()


def _html(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, HTML, text.encode(), headers=[*_PAGE_HEADERS, _REVALIDATED])


def _media_type(name: str) -> str:
    return MEDIA_TYPES[name.rpartition(".")[2]]


def _never_stored(response: HttpResponse) -> HttpResponse:
    kept = [each for each in response.headers if each != _REVALIDATED]
    return HttpResponse(response.status, response.content_type, response.body, [*kept, (b"cache-control", b"no-store")])


def _revalidated(request: RawRequest, response: HttpResponse) -> HttpResponse:
    """Return a response with its ETag, without its body if the reader has it."""
    if response.status != 200:  # noqa: PLR2004 - OK
        return response
    tag = etag_of(response.body)
    kept = [each for each in response.headers if each != _REVALIDATED]
    headers = [*kept, _REVALIDATED, (b"etag", tag.encode())]
    if has_current(request, tag):
        return HttpResponse(304, response.content_type, headers=headers)
    return HttpResponse(200, response.content_type, response.body, headers=headers)
