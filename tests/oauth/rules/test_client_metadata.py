"""Metadata of OAuth clients."""

from typing import Any
from uuid import UUID

import pytest

from billfold.oauth.rules.client_metadata import build_client, redirect_uri_error
from billfold.oauth.types import NewClient
from billfold.platform.clock import wall_now
from billfold.platform.errors import InvalidInput

REDIRECT = "https://books.example/callback"
GOOD: dict[str, Any] = {"name": "Books", "scopes": ("pockets.read",), "redirect_uris": (REDIRECT,)}


def new_client(**changed):
    return build_client(NewClient(**{**GOOD, **changed}), "books", wall_now())


def test_a_new_client_defaults_to_the_strict_profile():
    client = new_client()
    assert client.is_fapi2
    assert (client.dpop_bound, client.requires_nonce) == (True, True)
    assert client.grant_types == ("authorization_code", "refresh_token")
    loose = new_client(profile="documented")
    assert (loose.dpop_bound, loose.requires_nonce) == (False, False)


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"name": " "}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"profile": "loose"}, "profile"),
        ({"dpop_bound": False}, "dpop_bound"),
        ({"scopes": ()}, "scopes"),
        ({"scopes": ("everything",)}, "scopes"),
        ({"grant_types": ()}, "grant_types"),
        ({"grant_types": ("password",)}, "grant_types"),
        ({"grant_types": ("refresh_token",)}, "grant_types"),
        ({"grant_types": ("client_credentials",)}, "customer_id"),
        ({"customer_id": UUID(int=1)}, "customer_id"),
        ({"redirect_uris": ()}, "redirect_uris"),
        ({"redirect_uris": ("http://books.example/",)}, "redirect_uris"),
        ({"description": "x" * 501}, "description"),
    ],
)
def test_invalid_client_fields_are_reported_with_their_location(changed, place):
    with pytest.raises(InvalidInput) as refused:
        new_client(**changed)
    assert place in {each.loc[0] for each in refused.value.errors}


def test_a_service_user_with_personal_scopes_is_refused():
    with pytest.raises(InvalidInput):
        new_client(grant_types=("client_credentials",), redirect_uris=(), customer_id=UUID(int=1), scopes=("openid",))


@pytest.mark.parametrize(
    "uri",
    [
        "https://a.example/",
        "https://a.example:8443/x?y=z",
        "http://127.0.0.1:8765/callback",
        "http://[::1]:8765/callback",
    ],
)
def test_an_https_or_loopback_redirect_uri_is_accepted(uri):
    assert redirect_uri_error(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        "http://a.example/",
        "http://localhost/",
        "https://a.example/#x",
        "https://u@a.example/",
        "https://*.example/",
        "javascript:alert(1)",
        "//a.example",
        "https:a.example",
        "https://",
        "https://a.example/\\x",
        "https://a.example/ x",
        "https://a;b.example/",
        "com.app:/callback",
        "https://a.example:x/",
        "data:text/html,x",
        "https://a.example/é",
        "",
    ],
)
def test_a_redirect_uri_that_is_not_https_or_loopback_is_refused(uri):
    assert redirect_uri_error(uri) is not None
