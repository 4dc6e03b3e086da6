"""One request to a page: whose browser it is, who is signed in there, what came with it.

The cookie is a random secret. Signed in, its hash identifies a session; before that it does not, and
still what the forms of this browser are bound to.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from billfold.access.users.passkeys import RelyingParty
from billfold.access.users.rules import RECENT_AUTHENTICATION_WINDOW
from billfold.access.users.types import ClientInfo, Session, User
from billfold.http.raw_request import RawRequest
from billfold.platform.crypto import hash_token
from billfold.platform.errors import BillfoldError

COOKIE = "__Host-session"
DEVICE_COOKIE = "__Host-device"
HOME = "/account"
_FIELDS_MAX = 60
_COOKIE_BYTES = 32
_NUL = "\0"
"""What no column of the database takes."""
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9._~-][A-Za-z0-9._~/-]*)?(?:\?[A-Za-z0-9._~=&%+:/-]*)?")
_BROWSER_TOKENS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
_BROWSER_NAMES = {"Edg": "Edge", "OPR": "Opera"}
_OS_TOKENS = ("iPhone", "iPad", "Android", "Windows", "Mac OS X", "Linux")
_SYSTEM_NAMES = {"Mac OS X": "macOS"}


class PageContext:
    """What is known of a request once it is let in."""

    __slots__ = ("arrival", "cookie", "csrf", "device", "form", "is_new", "now", "session")

    def __init__(self, arrival: RawRequest, key: bytes, now: datetime) -> None:
        cookies = parse_cookies(arrival)
        cookie_sent = cookies.get(COOKIE, "")
        self.arrival = arrival
        self.now = now
        self.is_new = _SECRET.fullmatch(cookie_sent) is None
        self.cookie = secrets.token_urlsafe(_COOKIE_BYTES) if self.is_new else cookie_sent
        self.csrf = csrf_token(self.cookie, key)
        self.device = cookies.get(DEVICE_COOKIE, "")
        self.session: Session | None = None
        self.form: dict[str, str] = {}

    @property
    def cookie_hash(self) -> bytes:
        """What the cookie is known by in the database."""
        return hash_token(self.cookie)

    @property
    def user(self) -> User:
        """The user, with one factor or both. The middleware has checked that there is one."""
        assert self.session is not None
        return self.session.user

    @property
    def is_signed_in(self) -> bool:
        """Return whether a user is signed in with both factors."""
        return self.session is not None and self.session.complete

    @property
    def is_fresh(self) -> bool:
        """Return whether the user authenticated within the last minutes."""
        session = self.session
        return (
            session is not None
            and session.complete
            and self.now - session.authenticated_at <= RECENT_AUTHENTICATION_WINDOW
        )

    @property
    def client_info(self) -> ClientInfo:
        """From where the request comes, in words."""
        agent = self.arrival.header(b"user-agent") or ""
        return ClientInfo(address=self.arrival.client, device=describe_device(agent))

    def check_origin(self, site: RelyingParty) -> None:
        """Refuse what another site has sent. Raises `forbidden`.

        Pages send no referrer, so some browsers say "null" for the origin of their own forms;
        what they say beside it (Sec-Fetch-Site) cannot be set by a page.
        """
        origin = self.arrival.header(b"origin")
        fetched = self.arrival.header(b"sec-fetch-site")
        if origin != site.origin and (origin not in {None, "null"} or fetched != "same-origin"):
            raise BillfoldError("forbidden", "This form was sent from another site.")

    def check_csrf(self, token: str | None) -> None:
        """Refuse a form that was not made for this browser. Raises `forbidden`."""
        if self.is_new or not hmac.compare_digest((token or "").encode(), self.csrf.encode()):
            raise BillfoldError("forbidden", "This form has expired. Reload the page and try again.")

    def local_path(self, value: str | None) -> str:
        """Return where to go next: a path of these pages. Raises `bad-request` for any other."""
        if not value:
            return HOME
        if _OWN_PATH.fullmatch(value) is None or "//" in value.partition("?")[0]:
            raise BillfoldError("bad-request", "This link leads away from these pages.")
        return value


def csrf_token(cookie: str, key: bytes) -> str:
    """Return the CSRF token of a browser, from its cookie and the key."""
    digest = hmac.digest(key, b"csrf:" + cookie.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def parse_form(arrival: RawRequest) -> dict[str, str]:
    """Return the fields of a form. Raises `bad-request`: unreadable, no text, or one twice."""
    try:
        pairs = parse_qsl(
            arrival.body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise BillfoldError("bad-request", "The form cannot be read.") from None
    return _unique_fields(pairs)


def parse_query(scope: Any) -> dict[str, str]:  # noqa: ANN401 - a scope of the framework
    """Return the query of a page. Raises `bad-request` when a name comes twice."""
    raw = scope["query_string"].decode("latin-1")
    return _unique_fields(parse_qsl(raw, keep_blank_values=True))


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
    if any(_NUL in value for value in found.values()):
        raise BillfoldError("bad-request", "A field is no text.")
    return found


def parse_cookies(arrival: RawRequest) -> dict[str, str]:
    """Return the cookies of a request: the first of a name counts, being the most specific."""
    found: dict[str, str] = {}
    for part in (arrival.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    return found
