"""One request to a page: whose browser it is, who is signed in there, what came with it.

The cookie is a random secret. Signed in, its hash is a session's; before that it is nobody's, and
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

from billfold.access.users.passkeys import Site
from billfold.access.users.rules import FRESH_LASTS
from billfold.access.users.types import Person, Session, Visitor
from billfold.http.raw_request import RawRequest
from billfold.platform.crypto import hash_token
from billfold.platform.errors import BillfoldError

COOKIE = "__Host-session"
DEVICE_COOKIE = "__Host-device"
HOME = "/account"
_FIELDS_MAX = 60
_COOKIE_BYTES = 32
_NO_TEXT = "\0"
"""What no column of the database takes."""
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9._~-][A-Za-z0-9._~/-]*)?(?:\?[A-Za-z0-9._~=&%+:/-]*)?")
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
_BROWSER_NAMES = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS = ("iPhone", "iPad", "Android", "Windows", "Mac OS X", "Linux")
_SYSTEM_NAMES = {"Mac OS X": "macOS"}


class Visit:
    """What is known of a request once it is let in."""

    __slots__ = ("arrival", "cookie", "csrf", "device", "form", "is_new", "now", "session")

    def __init__(self, arrival: RawRequest, key: bytes, now: datetime) -> None:
        cookies = cookies_of(arrival)
        given = cookies.get(COOKIE, "")
        self.arrival = arrival
        self.now = now
        self.is_new = _SECRET.fullmatch(given) is None
        self.cookie = secrets.token_urlsafe(_COOKIE_BYTES) if self.is_new else given
        self.csrf = csrf_of(self.cookie, key)
        self.device = cookies.get(DEVICE_COOKIE, "")
        self.session: Session | None = None
        self.form: dict[str, str] = {}

    @property
    def cookie_hash(self) -> bytes:
        """What the cookie is known by in the database."""
        return hash_token(self.cookie)

    @property
    def person(self) -> Person:
        """Who is signed in, be it by half. The entrance has seen to it that somebody is."""
        assert self.session is not None
        return self.session.person

    @property
    def is_signed_in(self) -> bool:
        """Tell whether somebody is signed in with both factors."""
        return self.session is not None and self.session.complete

    @property
    def is_fresh(self) -> bool:
        """Tell whether he proved who he is within the last minutes."""
        session = self.session
        return (
            session is not None and session.complete and self.now - session.proved_at <= FRESH_LASTS
        )

    @property
    def visitor(self) -> Visitor:
        """From where the request comes, in words."""
        agent = self.arrival.header(b"user-agent") or ""
        return Visitor(address=self.arrival.client, device=device_in_words(agent))

    def must_come_from(self, site: Site) -> None:
        """Refuse what another site has sent. Raises `forbidden`.

        Pages send no referrer, so some browsers say "null" for the origin of their own forms;
        what they say beside it (Sec-Fetch-Site) cannot be set by a page.
        """
        origin = self.arrival.header(b"origin")
        fetched = self.arrival.header(b"sec-fetch-site")
        if origin != site.origin and (origin not in {None, "null"} or fetched != "same-origin"):
            raise BillfoldError("forbidden", "This form was sent from another site.")

    def must_carry(self, token: str | None) -> None:
        """Refuse a form that was not made for this browser. Raises `forbidden`."""
        if self.is_new or not hmac.compare_digest((token or "").encode(), self.csrf.encode()):
            raise BillfoldError(
                "forbidden", "This form has expired. Go back, load the page anew, and try again."
            )

    def own_path(self, value: str | None) -> str:
        """Return where to go next: a path of these pages. Raises `bad-request` for any other."""
        if not value:
            return HOME
        if _OWN_PATH.fullmatch(value) is None or "//" in value.partition("?")[0]:
            raise BillfoldError("bad-request", "This link leads away from these pages.")
        return value


def csrf_of(cookie: str, key: bytes) -> str:
    """Return what the forms of a browser carry: nobody can tell it who has not both."""
    digest = hmac.digest(key, b"csrf:" + cookie.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def form_of(arrival: RawRequest) -> dict[str, str]:
    """Return the fields of a form. Raises `bad-request`: unreadable, no text, or one twice."""
    try:
        pairs = parse_qsl(
            arrival.body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_FIELDS_MAX,
            errors="strict",
        )
    except ValueError:
        raise BillfoldError("bad-request", "The form cannot be read.") from None
    return _each_once(pairs)


def query_of(scope: Any) -> dict[str, str]:  # noqa: ANN401 - a scope of the framework
    """Return the query of a page. Raises `bad-request` when a name comes twice."""
    raw = scope["query_string"].decode("latin-1")
    return _each_once(parse_qsl(raw, keep_blank_values=True))


def device_in_words(agent: str) -> str:
    """Return a browser and its system from a User-Agent: "Firefox on macOS"."""
    browser = next((each for each in _BROWSERS if each in agent), "")
    system = next((each for each in _SYSTEMS if each in agent), "")
    name = _BROWSER_NAMES.get(browser, browser) or "a browser"
    return f"{name} on {_SYSTEM_NAMES.get(system, system)}" if system else name


def _each_once(pairs: list[tuple[str, str]]) -> dict[str, str]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BillfoldError("bad-request", "A field comes twice.")
    if any(_NO_TEXT in value for value in found.values()):
        raise BillfoldError("bad-request", "A field is no text.")
    return found


def cookies_of(arrival: RawRequest) -> dict[str, str]:
    """Return the cookies of a request: the first of a name counts, being the most specific."""
    found: dict[str, str] = {}
    for part in (arrival.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    return found
