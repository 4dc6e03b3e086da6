"""Registering programs from the command line."""

import json
import os

import pytest
from tests.support.oauth_clients import new_key

from billfold.cli.app import run
from billfold.wiring.cli_context import Wiring


@pytest.fixture
def billfold(database_dsn, tmp_path, capsys):
    """Run a command on a founded bank; return (status, what was said)."""
    environment = {
        "BILLFOLD_DATABASE_URL": database_dsn,
        "BILLFOLD_STATE_DIR": str(tmp_path),
        "BILLFOLD_SEED": "a seed of programs",
        "BILLFOLD_LOG_LEVEL": "ERROR",
        "PATH": os.environ["PATH"],
        "COLUMNS": "300",
    }

    def call(*words):
        status = run(Wiring(environment), arguments=words)
        captured = capsys.readouterr()
        return status, " ".join((captured.out + captured.err).split())

    assert call("migrate", "up")[0] == 0
    return call


@pytest.fixture
def pem(tmp_path):
    """Write the public half of a new key to a file; return its path."""

    def write(name="public.pem"):
        path = tmp_path / name
        path.write_text(new_key().pem)
        return str(path)

    return write


def create(billfold, pem, *more):
    return billfold(
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


def test_an_oauth_client_is_registered_listed_rotated_and_revoked(billfold, pem):
    status, said = create(billfold, pem)
    assert status == 0
    assert "kid (ES256)" in said
    assert "https://auth.localhost:8443" in said
    assert "books" in billfold("oauth-client", "list")[1]
    assert "kid = " in billfold("oauth-client", "rotate-key", "books", pem("next.pem"))[1]
    assert billfold("oauth-client", "revoke", "books")[0] == 0
    assert billfold("oauth-client", "revoke", "books")[0] == 1
    assert billfold("oauth-client", "rotate-key", "nobody", pem("other.pem"))[0] == 1


def test_an_invalid_client_is_rejected_with_every_error(billfold, pem):
    status, said = create(
        billfold,
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
    assert "books" not in billfold("oauth-client", "list")[1]


def test_a_client_id_is_unique(billfold, pem):
    assert create(billfold, pem)[0] == 0
    assert "duplicate-id" in create(billfold, pem)[1]


def test_the_keys_of_id_tokens_are_replaced(billfold):
    assert "published" in billfold("oauth-client", "rotate-signing-keys")[1]


def test_the_document_of_the_authorization_server_is_printed(capsysbinary):
    assert run(Wiring({}), arguments=["openapi", "auth"]) == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert document["servers"] == [{"url": "https://auth.localhost:8443"}]
    assert {"/api/oauth2/authorize", "/api/oauth2/token", "/api/oauth2/par"} <= set(document["paths"])
