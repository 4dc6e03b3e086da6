"""Appearance of the pages, and the headers against framing, scripts and referrers."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup

from billfold.pages.fonts import font_source
from billfold.platform.database.shortage import plain_error
from billfold.platform.dates import format_day, format_moment
from billfold.platform.money import format_price, format_usd

COOKIE = "__Host-session"
_KNOWN_CHARS = 4
_AS_OF = "as_of"
_OWN_LINK = re.compile(r'href="((?:/(?:companies|partners|team)/|\?)[^"#]*)(#[^"]*)?"')
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
_HEADERS = {
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff": "font/woff",
}


class Theme:
    """Renders pages in the name of the bank. Templates are the shared ones and those of `packages`."""

    def __init__(self, bank_name: str, packages: Collection[str] = (), **filters: Callable[..., object]) -> None:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only for pages

        self._templates = Environment(
            loader=ChoiceLoader(
                [PackageLoader(each, folder) for each in (__package__ or "", *packages) for folder in _folders(each)]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=with_true_minus,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.name_bank(bank_name)
        self._templates.filters["day"] = format_day
        self._templates.filters["dollars"] = format_dollars
        self._templates.filters["cents"] = format_usd
        self._templates.filters["ending"] = format_ending
        self._templates.filters["moment"] = format_moment
        self._templates.filters["plain"] = plain_error
        self._templates.filters["price"] = format_price
        self._templates.filters["ago"] = format_duration
        self._templates.filters["with_query"] = with_query
        self._templates.filters["on_day"] = on_day
        self._templates.filters.update(filters)
        self._templates.globals["icon"] = icon
        self.files = {file.name: file.read_bytes() for file in files(__package__).joinpath("static").iterdir()}
        self.version = _version_of(self.files)
        self._templates.globals["static_path"] = f"/files/{self.version}"

    def name_bank(self, name: str) -> None:
        """Set the name of the bank on the pages."""
        self._templates.globals["bank_name"] = name

    def render(self, name: str, facts: Mapping[str, Any]) -> str:
        """Return the text of a page."""
        return self._templates.get_template(f"{name}.html").render(facts)


def _version_of(static: Mapping[str, bytes]) -> str:
    """Return the version of the files of pages: browsers keep a file of a version, so each has addresses of its own."""
    found = hashlib.blake2b(font_source(), digest_size=16)
    for name in sorted(static):
        found.update(name.encode() + static[name])
    return found.hexdigest()


def _folders(package: str) -> list[str]:
    """Return the folders of a package that hold templates, whose names are unique in all of them."""
    inner = files(package).joinpath("templates").iterdir()
    return ["templates", *(f"templates/{each.name}" for each in inner if each.is_dir())]


@cache
def icon(name: str) -> str:
    """Return an icon of Lucide as part of a page, in the color of its text."""
    from lucide.jinja import lucide  # noqa: PLC0415 - only for pages

    return lucide(name, size=None, **{"class": "icon", "aria-hidden": "true"})


def with_true_minus(value: object) -> object:
    """Return what a template shows, an amount below zero with the sign that is as wide as a digit."""
    return f"\N{MINUS SIGN}{value[1:]}" if isinstance(value, str) and value.startswith("-$") else value


def page_headers(form_target_uri: str | None = None) -> dict[str, str]:
    """Return the headers of a page whose forms stay on this site, or may be redirected to one other site."""
    policy = _POLICY
    if form_target_uri:
        parts = urlsplit(form_target_uri)
        # Browsers apply the policy to the target of a form's redirect, too.
        policy += f" {parts.scheme}://{parts.netloc}" if parts.netloc else f" {parts.scheme}:"
    return {"content-security-policy": policy, **_HEADERS}


def format_duration(lasted: timedelta) -> str:
    """Format a duration by its largest unit: "3 h"."""
    seconds = int(lasted.total_seconds())
    unit, size = next((each for each in _UNITS if seconds >= each[1]), ("s", 1))
    return f"{seconds // size} {unit}"


def with_query(query: Mapping[str, str], **changes: str) -> str:
    """Return the query of an address with some of its names changed."""
    return urlencode({name: value for name, value in {**query, **changes}.items() if value})


def on_day(html: str, day: date | None) -> str:
    """Return a part of a page whose links to pages of a team, or to its own, stay as of a day."""
    if day is None:
        return html

    def dated(link: re.Match[str]) -> str:
        href, place = link.groups()
        if f"{_AS_OF}=" in href:
            return link[0]
        return f'href="{href}{"&amp;" if "?" in href else "?"}{_AS_OF}={day}{place or ""}"'

    return Markup(_OWN_LINK.sub(dated, html))  # noqa: S704 - a rendered page, and a date


def format_dollars(amount: Decimal) -> str:
    """Format an estimate in dollars, rounded to cents: "$1,204.33"."""
    return format_usd(int((amount * 100).to_integral_value()))


def format_ending(number: str) -> str:
    """Format the number of an account so that it can be recognized: "ending in 6789"."""
    return f"ending in {number[-_KNOWN_CHARS:]}"
