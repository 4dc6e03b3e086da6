"""Valid client metadata: profile, redirect addresses, scopes."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

from billfold.identity.members.rules import PERSONAL_SCOPES
from billfold.oauth.rules.authorization_params import SCOPES, sort_scopes
from billfold.oauth.types import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, REFRESH_TOKEN, Client, NewClient
from billfold.platform.errors import FieldError, InvalidInput

PROFILES = ("fapi2", "documented")
GRANT_TYPES = (AUTHORIZATION_CODE, REFRESH_TOKEN, CLIENT_CREDENTIALS)
REDIRECT_URIS_MAX = 20
"""Maximum number of addresses of each kind per client."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_HOST_CHARS = re.compile(r"[A-Za-z0-9.:-]+")
_URI_CHARS = re.compile(r"[!-~]{1,2000}")


def build_client(new: NewClient, client_id: str, now: datetime, *, member_id: UUID | None = None) -> Client:
    """Return the client with its defaults. Raises InvalidInput with every error."""
    mistakes = [FieldError((field,), message, "value_error") for field, message in _errors(new)]
    if not _ID.fullmatch(client_id):
        mistakes.append(FieldError(("client_id",), "must be 1 to 128 letters, digits, . _ -", "value_error"))
    if mistakes:
        raise InvalidInput(mistakes)
    strict = new.profile == "fapi2"
    checked = {
        "name": new.name.strip(),
        "description": new.description.strip(),
        "scopes": sort_scopes(new.scopes),
        "grant_types": tuple(each for each in GRANT_TYPES if each in new.grant_types),
        "dpop_bound": strict if new.dpop_bound is None else new.dpop_bound,
        "requires_nonce": strict if new.requires_nonce is None else new.requires_nonce,
    }
    return Client(**asdict(new) | checked, client_id=client_id, member_id=member_id, created_at=now, revoked_at=None)


def _errors(new: NewClient) -> Iterator[tuple[str, str]]:
    if not (1 <= len(new.name.strip()) <= 200 and new.name.isprintable()):  # noqa: PLR2004 - the longest name
        yield "name", "must be 1 to 200 printable characters"
    if len(new.description) > 500 or not new.description.isprintable():  # noqa: PLR2004 - as above
        yield "description", "may have at most 500 printable characters"
    if new.profile not in PROFILES:
        yield "profile", f"must be one of {', '.join(PROFILES)}"
    if new.profile == "fapi2" and new.dpop_bound is False:
        yield "dpop_bound", "cannot be off for a fapi2 client"
    yield from _scope_errors(new)
    yield from _grant_type_errors(new)
    for field in ("redirect_uris", "post_logout_redirect_uris"):
        yield from ((field, message) for message in _redirect_uri_errors(getattr(new, field)))


def _redirect_uri_errors(uris: tuple[str, ...]) -> Iterator[str]:
    if len(uris) > REDIRECT_URIS_MAX:
        yield f"may be {REDIRECT_URIS_MAX} at most"
    for uri in uris:
        if (message := redirect_uri_error(uri)) is not None:
            yield f"{uri!r} {message}"


def _scope_errors(new: NewClient) -> Iterator[tuple[str, str]]:
    unknown = sorted(set(new.scopes) - SCOPES.keys())
    if unknown or not new.scopes:
        yield "scopes", f"must be some of {' '.join(SCOPES)}"
    if CLIENT_CREDENTIALS in new.grant_types and PERSONAL_SCOPES & set(new.scopes):
        yield "scopes", "of a client that acts for itself cannot be about a user"


def _grant_type_errors(new: NewClient) -> Iterator[tuple[str, str]]:
    grants = set(new.grant_types)
    if not grants or grants - set(GRANT_TYPES) or (REFRESH_TOKEN in grants and AUTHORIZATION_CODE not in grants):
        yield "grant_types", "must be authorization_code (and refresh_token) or client_credentials"
    if {AUTHORIZATION_CODE, CLIENT_CREDENTIALS} <= grants:
        yield "grant_types", "of people and of a service user need separate clients"
    if (CLIENT_CREDENTIALS in grants) != (new.customer_id is not None):
        yield "customer_id", "belongs to client_credentials, and only to them"
    if (AUTHORIZATION_CODE in grants) != bool(new.redirect_uris):
        yield "redirect_uris", "belong to authorization_code, and only to it"


def redirect_uri_error(uri: str) -> str | None:
    """Return the error in a redirect address, or None.

    https everywhere; http only to the same machine, for native applications.
    """
    if not _URI_CHARS.fullmatch(uri) or "\\" in uri:
        return "has characters that are not allowed in an address"
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return "is not an address"
    if "#" in uri or parts.username is not None:
        return "has a fragment or a user"
    if not _HOST_CHARS.fullmatch(parts.hostname or "") or not _is_https_or_loopback(parts):
        return "must begin with https://, or http:// on 127.0.0.1 or [::1]"
    return None


def _is_https_or_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
