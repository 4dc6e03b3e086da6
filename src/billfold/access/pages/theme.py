"""How pages look, and the headers that keep them from being framed, scripted or followed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.datastructures import Cookie
from litestar.enums import MediaType

from billfold.access.pages.session import COOKIE, DEVICE_COOKIE, Visit

_DEVICE_SECONDS = 180 * 24 * 3600
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
_HEADERS = {
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
         "svg": "image/svg+xml"}  # fmt: skip


class Looks:
    """Turns facts into pages."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=PackageLoader(__package__ or ""),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["moment"] = moment
        self._templates.filters["capitalize_first"] = _capital
        self.files = {
            file.name: file.read_bytes() for file in files(__package__).joinpath("files").iterdir()
        }

    def page(
        self,
        visit: Visit,
        name: str,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        cookies: Sequence[Cookie] = (),
        leads_to: str | None = None,
        **facts: Any,
    ) -> Response[str]:
        """Return a page. `leads_to` is a foreign address its form may end up at."""
        text = self._templates.get_template(f"{name}.html").render(
            csrf=visit.csrf, session=visit.session, now=visit.now, **facts
        )
        return Response(
            text,
            status_code=status,
            media_type=MediaType.HTML,
            headers={**page_headers(leads_to), **(headers or {})},
            cookies=[*visit_cookies(visit), *cookies],
        )


def page_headers(leads_to: str | None = None) -> dict[str, str]:
    """Return the headers of a page whose forms stay here, or may end up at one other site."""
    policy = _POLICY
    if leads_to:
        parts = urlsplit(leads_to)
        # Browsers hold the policy against where a form is sent on to, as well.
        policy += f" {parts.scheme}://{parts.netloc}" if parts.netloc else f" {parts.scheme}:"
    return {"content-security-policy": policy, **_HEADERS}


def go(to: str, *cookies: Cookie) -> Response[bytes]:
    """Return the way to another page: 303, so that nothing is sent a second time."""
    return Response(
        b"", status_code=303, headers={"location": to, **page_headers()}, cookies=list(cookies)
    )


def visit_cookies(visit: Visit) -> list[Cookie]:
    """Return the cookie of a browser that has none yet."""
    return [session_cookie(visit.cookie)] if visit.is_new else []


def session_cookie(value: str) -> Cookie:
    """Return the cookie of a browser, signed in or not; it goes with the browser."""
    return Cookie(key=COOKIE, value=value, path="/", secure=True, httponly=True, samesite="lax")


def device_cookie(value: str) -> Cookie:
    """Return the cookie by which a browser is known again for half a year."""
    return Cookie(
        key=DEVICE_COOKIE, value=value, path="/", secure=True, httponly=True, samesite="lax",
        max_age=_DEVICE_SECONDS,
    )  # fmt: skip


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def moment(when: datetime, zone: str) -> str:
    """Say an instant in a person's own time: "Jun 2, 2025, 9:00 AM"."""
    there = when.astimezone(ZoneInfo(zone))
    return f"{there:%b} {there.day}, {there.year}, {there.hour % 12 or 12}:{there:%M %p}"
