"""Refusals of the authorization server: JSON for clients (RFC 6749, 5.2), a page for users."""

from __future__ import annotations

from html import escape

import msgspec

from billfold.access.oauth.errors import OAuthError
from billfold.http.responses import JSON, HttpResponse

STATUS = {"invalid_client": 401, "invalid_token": 401}
"""What is not here is 400."""
HTML = "text/html; charset=utf-8"
_CSP = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
PAGE_HEADERS = ((b"content-security-policy", _CSP), (b"x-frame-options", b"DENY"))
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
body {{ font: 16px/1.6 system-ui, sans-serif; margin: 0; display: grid; min-height: 100vh;
  place-items: center; background: Canvas; color: CanvasText; }}
main {{ max-width: 30rem; padding: 2rem 1.5rem; }}
h1 {{ font-size: 1.4rem; line-height: 1.3; margin: 0 0 .75rem; }}
p {{ margin: 0 0 1rem; }}
small {{ opacity: .7; }}
</style></head>
<body><main><h1>{title}</h1><p>{told}</p><p>{next_step}</p><small>{code}</small></main></body></html>
"""


def as_json(error: OAuthError, *headers: tuple[bytes, bytes]) -> HttpResponse:
    """Return the answer to a client."""
    body = {"error": error.error, "error_description": error.description}
    status = STATUS.get(error.error, 400)
    return HttpResponse(status, JSON, msgspec.json.encode(body), headers=[(b"pragma", b"no-cache"), *headers])


def as_page(error: OAuthError) -> HttpResponse:
    """Return the page for a user whose client sent a request that cannot be answered.

    There is no redirect: no address could be trusted.
    """
    page = _PAGE.format(
        title="This request cannot be answered",
        told=escape(error.description),
        next_step="Go back to the application that sent you here and begin again. Nothing was granted to it.",
        code=escape(error.error),
    )
    return HttpResponse(400, HTML, page.encode(), headers=PAGE_HEADERS)
