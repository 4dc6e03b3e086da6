"""Registering programs from the command line."""

import json

import pytest
from tests.support.oauth import new_key

from billfold.oauth.rules.public_keys import from_jwk
from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring


@pytest.fixture
def pem(tmp_path):
    """Write the public half of a new key to a file; return its path."""

    def write(name="public.pem"):
        path = tmp_path / name
        path.write_text(new_key().pem)
        return str(path)

    return write


def create(founded, pem, *more):
    return founded(
        "oauth-client",
        "create",
        "Books",
        "--client-id",
        "books",
        "--scope",
        "openid pockets.read",
        "--redirect-uri",
        "https://books.example/callback",
        "--key",
        pem(),
        *more,
    )


def test_an_oauth_client_is_registered_listed_rotated_and_revoked(founded, pem):
    status, said = create(founded, pem)
    assert status == 0
    assert "kid (ES256)" in said
    assert "https://auth.localhost:8443" in said
    assert "books" in founded("oauth-client", "list")[1]
    assert "kid = " in founded("oauth-client", "rotate-key", "books", pem("next.pem"))[1]
    assert founded("oauth-client", "revoke", "books")[0] == 0
    assert founded("oauth-client", "revoke", "books")[0] == 1
    assert founded("oauth-client", "rotate-key", "nobody", pem("other.pem"))[0] == 1


def test_an_invalid_client_is_rejected_with_every_error(founded, pem):
    status, said = create(
        founded,
        pem,
        "--profile",
        "loose",
        "--scope",
        "everything",
        "--post-logout-redirect-uri",
        "http://books.example/bye",
    )
    assert status == 1
    for place in ("profile", "scopes", "post_logout_redirect_uris"):
        assert place in said
    assert "books" not in founded("oauth-client", "list")[1]


def test_a_duplicate_client_id_is_refused(founded, pem):
    assert create(founded, pem)[0] == 0
    assert "duplicate-id" in create(founded, pem)[1]


def test_the_id_token_signing_keys_are_rotated(founded):
    assert "published" in founded("oauth-client", "rotate-signing-keys")[1]


def test_the_document_of_the_authorization_server_is_printed(capsysbinary):
    assert run(Wiring({}), arguments=["openapi", "auth"]) == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert document["servers"] == [{"url": "https://auth.localhost:8443"}]
    assert {"/api/oauth2/authorize", "/api/oauth2/token", "/api/oauth2/par"} <= set(document["paths"])


@pytest.fixture
def jwk(tmp_path):
    """Write a new public key as JWK with more members to a file; return its path and the key."""

    def write(**members):
        path, key = tmp_path / "public.jwk", new_key()
        public = {name: key.jwk[name] for name in ("kty", "crv", "x", "y")}
        path.write_text(json.dumps(public | members))
        return str(path), from_jwk(public).thumbprint

    return write


@pytest.mark.parametrize("kid", ["2026-11", "https://books.example/keys#1", None])
def test_the_kid_of_a_jwk_is_kept(founded, jwk, kid):
    path, thumbprint = jwk(**({} if kid is None else {"kid": kid}))
    status, said = create(founded, lambda: path)
    assert (status, (kid or thumbprint) in said) == (0, True)


@pytest.mark.parametrize("kid", ["", "two words", "k" * 129, 7])
def test_a_client_jwk_without_a_usable_kid_is_refused(founded, jwk, kid):
    path, _ = jwk(kid=kid)
    status, said = create(founded, lambda: path)
    assert (status, "kid" in said) == (1, True)
