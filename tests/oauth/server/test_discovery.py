"""Discovery documents of the authorization server."""

from datetime import timedelta

from tests.support.oauth import ISSUER

from billfold.oauth import signing_keys
from billfold.oauth.server.auth_server import AuthServer
from billfold.platform.clock import wall_now


async def test_oauth_metadata_lists_the_supported_features(books_client):
    told = (await books_client.http.get("/.well-known/openid-configuration")).json()
    assert told["issuer"] == ISSUER
    assert told["authorization_response_iss_parameter_supported"] is True
    assert told["code_challenge_methods_supported"] == ["S256"]
    assert told["response_types_supported"] == ["code"]
    assert told["token_endpoint_auth_methods_supported"] == ["private_key_jwt"]
    for use in ("dpop", "token_endpoint_auth"):
        algorithms = set(told[f"{use}_signing_alg_values_supported"])
        assert {"ES256", "PS256", "EdDSA"} <= algorithms
        assert not algorithms & {"RS256", "HS256", "none"}
    assert {"notifications.read", "reports.write", "pockets.read"} <= set(told["scopes_supported"])
    assert told["grant_types_supported"] == ["authorization_code", "refresh_token", "client_credentials"]


async def test_every_endpoint_in_the_oauth_metadata_exists(books_client):
    told = (await books_client.http.get("/.well-known/openid-configuration")).json()
    addresses = [value for name, value in told.items() if name.endswith(("_endpoint", "_uri"))]
    assert len(addresses) == 8
    for address in addresses:
        assert (await books_client.http.request("OPTIONS", address)).status_code == 204, address


async def test_the_jwks_contains_only_public_keys(books_client):
    keys = (await books_client.http.get("/.well-known/jwks.json")).json()["keys"]
    assert {key["alg"] for key in keys} == {"PS256", "RS256"}
    assert all(set(key) == {"kty", "n", "e", "kid", "alg", "use"} for key in keys)


async def test_signing_keys_are_rotated_without_a_gap(bank, books_client):
    first = await books_client.tokens()
    now = wall_now()
    async with bank.pool.acquire() as conn:
        made = await signing_keys.rotate_signing_keys(conn, bank.vault, now)
    early, late = now + timedelta(seconds=1), now + timedelta(minutes=15)
    published = await AuthServer(bank).signing_keys(early)

    assert len(published) == 4
    used = [signing_keys.sign(published, "PS256", {}, now=at).split(".")[0] for at in (early, late)]
    assert used[0] == first["id_token"].split(".")[0]
    assert used[1] != used[0]
    assert signing_keys.verify_id_token(published, first["id_token"], issuer=ISSUER) is not None
    gone = await AuthServer(bank).signing_keys(now + timedelta(days=2))
    assert {key.key_id for key in gone} == set(made)


async def test_a_private_signing_key_is_stored_encrypted(bank, books_client):
    await books_client.tokens()
    rows = await bank.pool.fetch("SELECT sealed FROM signing_key")
    assert len(rows) == 2
    assert all(b"\x30\x82" not in bytes(row["sealed"])[:40] for row in rows)
