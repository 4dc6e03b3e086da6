"""One request to a page: its browser, its user, and its input.

The cookie is a random secret. Signed in, its hash identifies a session; before that it does not, but
forms of this browser are bound to it all the same.
"""

import base64
import hashlib
import hmac
import inspect
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property, wraps
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from uuid import UUID

from litestar import Response
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from litestar.types import Receive
from markupsafe import escape

from billfold.http.raw_request import RawRequest, has_control, is_uuid, parse_cookies
from billfold.http.uploads import UploadTurns
from billfold.identity.users import store
from billfold.identity.users.passkeys import RelyingParty
from billfold.identity.users.passwords import PasswordGate
from billfold.identity.users.rules import RECENT_AUTHENTICATION_WINDOW, ClientInfo, Membership, Session, User
from billfold.ledger.bank import Bank
from billfold.oauth.rules.authorization_params import group_scopes
from billfold.pages.theme import COOKIE, Theme, page_headers
from billfold.platform.crypto import hash_token
from billfold.platform.dates import is_day, parse_day
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound, Refused
from billfold.web.cookies import DEVICE_COOKIE, session_cookie
from billfold.web.done_messages import DONE
from billfold.web.forms import field_errors

RouteOptions = dict[str, Any]
PageResponse = Response[Any]
Page = Callable[..., Awaitable[PageResponse]]
PUBLIC: RouteOptions = {"authentication": "none"}
"""No authentication required."""
TAKES_FILE: RouteOptions = {"authentication": "none", "takes_file": True}
"""No authentication required, and the body may be a form with a file, which the page function receives."""
FIRST_FACTOR: RouteOptions = {"authentication": "first factor"}
"""For users who presented one factor, or both."""
RECENT_AUTHENTICATION: RouteOptions = {"authentication": "recent"}
"""For users who authenticated within the last five minutes."""

HOME = "/"
ACCOUNT = "/account"
_OF_DAY = ("as_of", "cursor", "way", "offset", "done")
"""Names in the address of a page as of a day that its state now does not have."""
HTTP_OK = 200
_FIELDS_MAX = 60
_FORM_FIELDS_MAX = 150
_COOKIE_BYTES = 32
_FORM_KEY_BYTES = 18
_LINK_CHARS_MAX = 100
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9._~-][A-Za-z0-9._~/-]*)?(?:\?[A-Za-z0-9._~=&%+:/-]*)?")
_BROWSER_TOKENS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
_BROWSER_NAMES = {"Edg": "Edge", "OPR": "Opera"}
_OS_TOKENS = ("iPhone", "iPad", "Android", "Windows", "Mac OS X", "Linux")
_SYSTEM_NAMES = {"Mac OS X": "macOS"}
_ADDRESS_SIGNS = "/?#&=%:,+~@!$'()*;[]"


class LockedOut(BillfoldError):
    """There were too many attempts; none is accepted for some seconds."""

    def __init__(self, seconds: int) -> None:
        minutes = -(-seconds // 60)
        wait = f"{seconds} seconds" if seconds < 60 else f"{minutes} minutes"  # noqa: PLR2004 - seconds of a minute
        wait = wait.removesuffix("s") if wait.startswith("1 ") else wait
        super().__init__("login-locked", f"There were too many attempts. Wait {wait}, or use a passkey.")
        self.headers = {"retry-after": str(seconds)}


FormError = str | BillfoldError
"""The reason a form is shown again: a sentence, or an error."""


class PageServer:
    """The services that all pages of one process share, once a bank is open."""

    def __init__(self, packages: Collection[str]) -> None:
        self.theme = Theme("", packages, grouped=group_scopes)

    def open_bank(self, bank: Bank, clock: Callable[[], datetime]) -> None:
        """Connect the pages to a bank; `clock` is wall time."""
        self.bank = bank
        self.clock = clock
        self.theme.name_bank(bank.settings.bank_name)
        self.gate = PasswordGate()
        self.turns = UploadTurns(bank.settings.uploads_per_tenant)
        self.origin = bank.settings.auth_origin
        host = self.origin.removeprefix("https://").partition(":")[0]
        self.site = RelyingParty(bank.settings.bank_name, host, self.origin)
        self.csrf_key = hashlib.blake2b(bank.seed, person=b"billfold.forms").digest()


class PageContext:
    """One request: the browser, its session, and its input."""

    def __init__(self, server: PageServer, request: RawRequest, receive: Receive | None = None) -> None:
        cookies = parse_cookies(request)
        cookie_sent = cookies.get(COOKIE, "")
        self.server = server
        self.pool = server.bank.pool
        self.vault = server.bank.vault
        self.request = request
        self._receive = receive
        self.now = server.clock()
        self.is_new = _SECRET.fullmatch(cookie_sent) is None
        self.cookie = secrets.token_urlsafe(_COOKIE_BYTES) if self.is_new else cookie_sent
        self.csrf = csrf_token(self.cookie, server.csrf_key)
        self.device = cookies.get(DEVICE_COOKIE, "")
        self.session: Session | None = None
        self.form: dict[str, str] = {}
        self.shell: Mapping[str, Any] = {"layout": "frame.html"}  # of pages of persons: own_shell of console/team.py

    @property
    def receive(self) -> Receive:
        """Return the ASGI receive function of a page that takes a file."""
        assert self._receive is not None
        return self._receive

    @property
    def cookie_hash(self) -> bytes:
        """Return the hash by which the database knows the cookie."""
        return hash_token(self.cookie)

    @property
    def own_session(self) -> Session:
        """The session, with one factor or both. The middleware has ensured that there is one."""
        assert self.session is not None
        return self.session

    @property
    def user(self) -> User:
        """The user of the session."""
        return self.own_session.user

    @property
    def is_signed_in(self) -> bool:
        """Return whether a user is signed in with both factors."""
        return self.session is not None and self.session.complete

    @property
    def is_fresh(self) -> bool:
        """Return whether the user authenticated within the last minutes."""
        return self.is_signed_in and self.now - self.own_session.authenticated_at <= RECENT_AUTHENTICATION_WINDOW

    @property
    def user_agent(self) -> str | None:
        """The User-Agent header."""
        return self.request.header(b"user-agent")

    @property
    def client_info(self) -> ClientInfo:
        """The client of the request, in words."""
        return ClientInfo(address=self.request.client, device=describe_device(self.user_agent or ""))

    @cached_property
    def query(self) -> dict[str, str]:
        """The query. Raises `bad-request` for a repeated name, or too many names."""
        try:
            pairs = parse_qsl(self.request.query.decode("latin-1"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
        except ValueError:
            raise BillfoldError("bad-request", "The address has too many fields.") from None
        return _unique_fields(pairs)

    @property
    def next_path(self) -> str:
        """Return the next page named by the form or the link. Raises `bad-request`."""
        return self.local_path(self._sent.get("next"))

    @property
    def form_key(self) -> str:
        """The idempotency key of the form that was sent: the same however often it is sent."""
        return self.form.get("form_key", "")

    @property
    def link(self) -> str:
        """The secret of the e-mailed link that led here, from the form or the query."""
        return self._sent.get("link", "")[:_LINK_CHARS_MAX]

    @property
    def _sent(self) -> Mapping[str, str]:
        return self.form if self.request.method == "POST" else self.query

    def _done(self, facts: Mapping[str, Any]) -> str:
        """Return the message of the form that led here, nothing on a page that does not show what it names."""
        try:
            return DONE.get(self.query.get("done", ""), "").format_map(facts) if self.request.method == "GET" else ""
        except (AttributeError, KeyError):
            return ""

    @property
    def _requested_day(self) -> date | None:
        """The day of `as_of` that a link names: a page that shows another state says so."""
        text = self.query.get("as_of", "") if self.request.method == "GET" else ""
        try:
            return parse_day(text) if is_day(text) else None
        except ValueError:  # out of range
            return None

    async def memberships(self) -> list[Membership]:
        """Return the active memberships of the visitor, by the names of the companies."""
        return await store.list_user_memberships(self.pool, self.user.user_id, only_active=True)

    def local_path(self, value: str | None) -> str:
        """Return the next page: a path of these pages. Raises `bad-request` for any other."""
        if not value:
            return HOME
        if _OWN_PATH.fullmatch(value) is None or "//" in value.partition("?")[0]:
            raise BillfoldError("bad-request", "This link leads away from these pages.")
        return value

    def check_origin(self) -> None:
        """Refuse a request from another site. Raises `forbidden`.

        Pages send no referrer, so some browsers send "null" as the origin of their own forms;
        the header Sec-Fetch-Site of the same request cannot be set by a page.
        """
        origin = self.request.header(b"origin")
        fetched = self.request.header(b"sec-fetch-site")
        if origin != self.server.origin and (origin not in {None, "null"} or fetched != "same-origin"):
            raise BillfoldError("forbidden", "This form was sent from another site.")

    def check_csrf(self, token: str | None) -> None:
        """Refuse a form that was not made for this browser. Raises `forbidden`."""
        if self.is_new or not hmac.compare_digest((token or "").encode(), self.csrf.encode()):
            raise BillfoldError("forbidden", "This form has expired. Go back, reload its page and try again.")

    def render(
        self,
        name: str,
        *,
        wrong: FormError = "",
        status: int | None = None,
        headers: dict[str, str] | None = None,
        form_target_uri: str | None = None,
        **facts: Any,
    ) -> PageResponse:
        """Return a page; with an error it is 422, 409 if a rule refused, 429 after too many attempts.

        `form_target_uri` is an external address to which its form may be redirected.
        """
        status = status or (_status_of(wrong) if wrong else HTTP_OK)
        headers = wrong.headers if isinstance(wrong, LockedOut) else headers
        facts = {
            "csrf": self.csrf,
            "form_key": secrets.token_urlsafe(_FORM_KEY_BYTES),
            "session": self.session,
            "wrong": sentence_of(wrong),
            "field_errors": field_errors(wrong),
            "done": self._done(facts) if status == HTTP_OK else "",
            "requested_day": self._requested_day,
            "kept_query": urlencode({name: text for name, text in self.query.items() if name not in _OF_DAY}),
        } | {**self.shell, **facts}
        return Response(
            self._with_every_error(name, facts),
            status_code=status,
            media_type=MediaType.HTML,
            headers={**page_headers(form_target_uri), **(headers or {})},
            cookies=[session_cookie(self.cookie)] if self.is_new else [],
        )

    def _with_every_error(self, name: str, facts: dict[str, Any]) -> str:
        """Return a page with all errors: those that belong to no field are shown at its top."""
        text = self.server.theme.render(name, facts)
        marked = {field: each for field, each in facts["field_errors"].items() if f'id="{field}-mistake"' in text}
        wrong = " ".join(each for field, each in facts["field_errors"].items() if field not in marked)
        if wrong:
            facts = facts | {"field_errors": marked, "wrong": wrong}
            text = self.server.theme.render(name, facts)
        if facts["wrong"] and not marked and escape(facts["wrong"]) not in text:
            shown = {"heading": "This was refused", "sentence": facts["wrong"], "trace_id": self.request.trace_id}
            text = self.server.theme.render("error", facts | shown)
        return text


def redirect(to: str, cookies: Sequence[Cookie] = (), *, done: str = "") -> PageResponse:
    """Return the redirect to another page: 303, so that nothing is sent twice. It shows what was `done`."""
    if done:
        path, mark, place = to.partition("#")
        to = f"{path}{'&' if '?' in path else '?'}done={done}{mark}{place}"
    location = quote(to, safe=_ADDRESS_SIGNS)  # a header has only latin-1; quoted parts stay as they are
    return Response(b"", status_code=303, headers={"location": location, **page_headers()}, cookies=list(cookies))


def shown_again(show: Page, *further: type[BillfoldError], unless: str = "") -> Callable[[Page], Page]:
    """Let a function show the page of a form again with the error that the form met: InvalidInput, Refused, `further`.

    It takes the arguments of the page function that it names, and `wrong`. Errors of a code are raised: `unless`.
    """
    names = inspect.signature(show).parameters
    kinds: tuple[type[BillfoldError], ...] = (InvalidInput, Refused, *further)

    def decorate(send: Page) -> Page:
        @wraps(send)
        async def send_or_show(**given: Any) -> PageResponse:
            try:
                return await send(**given)
            except kinds as wrong:
                if wrong.code == unless:
                    raise
                return await show(**{name: value for name, value in given.items() if name in names}, wrong=wrong)

        return send_or_show

    return decorate


def _status_of(wrong: FormError) -> int:
    if isinstance(wrong, LockedOut):
        return 429
    return 409 if isinstance(wrong, Refused) else 422


def sentence_of(mistake: FormError) -> str:
    """Return a form's summary of an error; errors of fields are shown there."""
    if isinstance(mistake, InvalidInput):
        return "Correct the marked field." if len(mistake.errors) == 1 else "Correct the marked fields."
    return mistake if isinstance(mistake, str) else mistake.detail


def path_id(text: str, detail: str = "The address is wrong.") -> UUID:
    """Return the id in the path of a page. Raises NotFound."""
    if not is_uuid(text):
        raise NotFound(detail)
    return UUID(text)


def csrf_token(cookie: str, key: bytes) -> str:
    """Return the CSRF token of a browser, from its cookie and the key."""
    digest = hmac.digest(key, b"csrf:" + cookie.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def parse_form(request: RawRequest) -> dict[str, str]:
    """Return the fields of a form. Raises `bad-request`: unreadable, not text, or repeated."""
    try:
        pairs = parse_qsl(
            request.body.decode("ascii"), keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise BillfoldError("bad-request", "The form cannot be read.") from None
    return _unique_fields(pairs)


def describe_device(agent: str) -> str:
    """Return a browser and its system from a User-Agent: "Firefox on macOS"."""
    browser = next((each for each in _BROWSER_TOKENS if each in agent), "")
    system = next((each for each in _OS_TOKENS if each in agent), "")
    name = _BROWSER_NAMES.get(browser, browser) or "a browser"
    return f"{name} on {_SYSTEM_NAMES.get(system, system)}" if system else name


def _unique_fields(pairs: list[tuple[str, str]]) -> dict[str, str]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BillfoldError("bad-request", "A field comes twice.")
    if any(map(has_control, found.values())):
        raise BillfoldError("bad-request", "A field is not text.")
    return found
