"""Exchanging codes, refresh tokens and a client's own word."""

import asyncio
from datetime import timedelta

import jwt
import pytest
from tests.support.oauth import ISSUER, KEYS, new_key, refused

from billfold.oauth import grants
from billfold.platform.clock import wall_now


async def counts(bank):
    """Return how many tokens there are."""
    tables = ("access_token", "refresh_token")
    return [await bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in tables]


@pytest.mark.parametrize("algorithm", list(KEYS))
async def test_a_code_is_exchanged_for_tokens_bound_to_a_key(relying, algorithm):
    books_client = await relying("books", keys=(algorithm,), requires_nonce=False)
    books_client.key, books_client.proof_key = KEYS[algorithm], new_key(algorithm)

    tokens = await books_client.tokens(scope="pockets.read openid")

    assert (tokens["token_type"], tokens["expires_in"]) == ("DPoP", 900)
    assert tokens["scope"] == "openid pockets.read"
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope", "refresh_token", "id_token"}
    assert (await books_client.userinfo(tokens["access_token"])).status_code == 200


async def test_a_documented_profile_client_without_a_dpop_proof_gets_a_bearer_token(ledger_client):
    tokens = await ledger_client.tokens(dpop=None)
    assert tokens["token_type"] == "Bearer"
    assert await ledger_client.is_good(tokens["access_token"], dpop=None, scheme="Bearer")


async def test_a_dpop_proof_yields_a_bound_token_for_any_client(ledger_client):
    tokens = await ledger_client.tokens()
    assert tokens["token_type"] == "DPoP"
    assert not await ledger_client.is_good(tokens["access_token"], dpop=None, scheme="Bearer")


@pytest.mark.parametrize(("client", "algorithm"), [("fapi2", "PS256"), ("documented", "RS256")])
async def test_an_id_token_identifies_the_user_the_member_and_the_customer(relying, oauth_user, client, algorithm):
    books_client = await relying("books", profile=client, requires_nonce=False)
    tokens = await books_client.tokens(scope="openid profile email pockets.read", nonce="n" * 64)
    keys = jwt.PyJWKSet.from_dict((await books_client.http.get("/.well-known/jwks.json")).json())
    header = jwt.get_unverified_header(tokens["id_token"])

    claims = jwt.decode(tokens["id_token"], keys[header["kid"]], [algorithm], audience="books", issuer=ISSUER)

    assert header["alg"] == algorithm
    assert claims["exp"] - claims["iat"] == 300
    assert (claims["sub"], claims["nonce"]) == (str(oauth_user.user_id), "n" * 64)
    assert (claims["name"], claims["email_verified"]) == ("Anna Lind", True)
    assert claims["member_id"] == str(oauth_user.member_id)
    assert claims["customer_id"] == str(oauth_user.customer_id)
    assert "phone_number" not in claims
    assert not await books_client.is_good(tokens["id_token"])


async def test_reusing_an_authorization_code_revokes_its_tokens(books_client):
    code = await books_client.code()
    tokens = (await books_client.exchange(code)).json()

    refused(await books_client.exchange(code), "invalid_grant")

    assert not await books_client.is_good(tokens["access_token"])
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_concurrent_exchanges_of_one_code_succeed_once_and_revoke_its_tokens(books_client, bank):
    code = await books_client.code()

    answers = await asyncio.gather(*(books_client.exchange(code) for _ in range(20)))

    assert sorted(each.status_code for each in answers) == [200] + [400] * 19
    winner = next(each.json() for each in answers if each.status_code == 200)
    assert not await books_client.is_good(winner["access_token"])
    assert await counts(bank) == [0, 0]


async def test_an_authorization_code_expires_after_a_minute(books_client, bank):
    code = await books_client.code()
    await bank.pool.execute("UPDATE authorization_code SET expires_at = expires_at - interval '60 s'")
    refused(await books_client.exchange(code), "invalid_grant")
    assert await counts(bank) == [0, 0]


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://books.example/other"},
        {"redirect_uri": None},
        {"code_verifier": "x" * 43},
        {"code_verifier": "short"},
        {"code_verifier": None},
        {"code": "no code of ours"},
    ],
)
async def test_exchanging_a_code_with_a_different_parameter_is_refused(books_client, bank, changed):
    code = await books_client.code()
    answer = await books_client.exchange(code, **changed)
    refused(answer, "invalid_grant")
    assert await counts(bank) == [0, 0]
    assert (await books_client.exchange(code)).status_code == 200


async def test_a_code_is_bound_to_the_dpop_jkt_of_its_request(books_client, bank):
    other = await books_client.code(dpop_jkt=new_key().thumbprint)
    refused(await books_client.exchange(other), "invalid_grant")
    assert await counts(bank) == [0, 0]
    own = await books_client.code(dpop_jkt=books_client.proof_key.thumbprint)
    assert (await books_client.exchange(own)).status_code == 200


async def test_exchanging_a_code_of_a_different_client_is_refused(books_client, relying, bank):
    code = await books_client.code()
    other = await relying("other", requires_nonce=False)
    other.verifier = books_client.verifier
    refused(await other.exchange(code), "invalid_grant")
    assert (await books_client.exchange(code)).status_code == 200


async def test_unsupported_grant_types_are_refused(books_client, bank):
    for form, error in [
        ({"grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        ({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "unsupported_grant_type"),
        ({"grant_type": "implicit"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unauthorized_client"),
        ({"grant_type": "authorization_code"}, "invalid_request"),
        ({"grant_type": "refresh_token"}, "invalid_request"),
        ({}, "invalid_request"),
    ]:
        refused(await books_client.ask_token(form), error)
        assert await counts(bank) == [0, 0]


# -- refreshing ------------------------------------------------------------------------


async def test_refreshing_keeps_a_bound_refresh_token(books_client):
    tokens = await books_client.tokens()
    first = (await books_client.refresh(tokens["refresh_token"])).json()
    again = (await books_client.refresh(first["refresh_token"])).json()
    assert first["refresh_token"] == again["refresh_token"] == tokens["refresh_token"]
    for each in (tokens, first, again):
        assert await books_client.is_good(each["access_token"])


async def test_a_bearer_refresh_token_is_rotated_and_its_reuse_revokes_the_family(ledger_client):
    tokens = await ledger_client.tokens(dpop=None)
    following = (await ledger_client.refresh(tokens["refresh_token"], dpop=None)).json()
    assert following["refresh_token"] != tokens["refresh_token"]

    refused(await ledger_client.refresh(tokens["refresh_token"], dpop=None), "invalid_grant")

    refused(await ledger_client.refresh(following["refresh_token"], dpop=None), "invalid_grant")
    for each in (tokens, following):
        assert not await ledger_client.is_good(each["access_token"], dpop=None, scheme="Bearer")


async def test_concurrent_refreshes_of_one_token_succeed_once_and_revoke_the_family(ledger_client, bank):
    tokens = await ledger_client.tokens(dpop=None)
    token = tokens["refresh_token"]
    answers = await asyncio.gather(*(ledger_client.refresh(token, dpop=None) for _ in range(10)))
    assert sorted(each.status_code for each in answers) == [200] + [400] * 9
    assert await counts(bank) == [0, 0]


async def test_a_refresh_token_is_refused_for_a_different_client_or_key(books_client, relying, bank):
    tokens = await books_client.tokens()
    before = await counts(bank)
    other = await relying("other", requires_nonce=False)
    refused(await other.refresh(tokens["refresh_token"]), "invalid_grant")
    books_client.proof_key = new_key()
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")
    assert await counts(bank) == before


async def test_a_refresh_can_narrow_scopes_but_not_widen_them(books_client, bank):
    tokens = await books_client.tokens(scope="openid pockets.read")
    before = await counts(bank)
    wider = await books_client.refresh(tokens["refresh_token"], scope="openid pockets.write")
    refused(wider, "invalid_scope")
    assert await counts(bank) == before
    narrow = (await books_client.refresh(tokens["refresh_token"], scope="openid")).json()
    assert narrow["scope"] == "openid"
    assert (await books_client.refresh(tokens["refresh_token"])).json()["scope"] == "openid pockets.read"
    await bank.pool.execute("UPDATE oauth_client SET scopes = '{openid}'")
    assert (await books_client.refresh(tokens["refresh_token"])).json()["scope"] == "openid"


async def test_a_refresh_token_expires_ninety_days_after_consent(books_client, bank):
    tokens = await books_client.tokens()
    await books_client.refresh(tokens["refresh_token"])
    life = await bank.pool.fetchval("SELECT expires_at - issued_at FROM refresh_token")
    assert life == timedelta(days=90)
    await bank.pool.execute("UPDATE refresh_token SET expires_at = now()")
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")


async def test_rotating_a_refresh_token_does_not_extend_its_lifetime(ledger_client, bank):
    tokens = await ledger_client.tokens(dpop=None)
    await ledger_client.refresh(tokens["refresh_token"], dpop=None)
    ends = await bank.pool.fetch("SELECT DISTINCT expires_at FROM refresh_token")
    assert len(ends) == 1


async def test_a_client_without_the_refresh_grant_gets_no_refresh_token(relying):
    once = await relying("once", grant_types=("authorization_code",), requires_nonce=False)
    assert "refresh_token" not in await once.tokens()
    refused(await once.refresh("a token"), "unauthorized_client")


@pytest.mark.parametrize(
    "statement", ["UPDATE membership SET status = 'DEACTIVATED'", "UPDATE user_account SET status = 'DEACTIVATED'"]
)
async def test_tokens_and_codes_of_a_deactivated_member_are_refused(books_client, bank, statement):
    tokens = await books_client.tokens()
    code = await books_client.code()
    await bank.pool.execute(statement)
    assert not await books_client.is_good(tokens["access_token"])
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")
    refused(await books_client.exchange(code), "invalid_grant")


async def test_revoking_the_tokens_of_a_user_also_revokes_codes(books_client, bank, oauth_user):
    tokens = await books_client.tokens()
    code = await books_client.code()
    async with bank.pool.acquire() as conn:
        await grants.revoke_user_tokens(conn, oauth_user.user_id)
    assert not await books_client.is_good(tokens["access_token"])
    refused(await books_client.exchange(code), "invalid_grant")


async def test_revoking_a_grant_revokes_its_codes_and_tokens(books_client, bank, oauth_user):
    tokens = await books_client.tokens()
    code = await books_client.code()
    (grant,) = await grants.list_grants(bank.pool, oauth_user.user_id)
    async with bank.pool.acquire() as conn:
        assert await grants.revoke_grant(conn, user_id=oauth_user.user_id, grant_id=grant.grant_id, now=wall_now())
    assert not await books_client.is_good(tokens["access_token"])
    refused(await books_client.refresh(tokens["refresh_token"]), "invalid_grant")
    refused(await books_client.exchange(code), "invalid_grant")
    assert await grants.list_grants(bank.pool, oauth_user.user_id) == []


# -- service users ---------------------------------------------------------------------


@pytest.fixture
async def robot(relying, oauth_user):
    return await relying(
        "robot",
        grant_types=("client_credentials",),
        redirect_uris=(),
        requires_nonce=False,
        customer_id=oauth_user.customer_id,
        scopes=("pockets.read", "transfers.read"),
    )


async def test_a_service_user_gets_a_token_with_client_credentials(robot, bank, oauth_user):
    answer = await robot.ask_token({"grant_type": "client_credentials", "scope": "pockets.read"})
    tokens = answer.json()
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope"}
    access = await grants.find_access_token(bank.pool, tokens["access_token"], wall_now())
    assert access is not None
    assert (access.customer_id, access.role, access.user_id) == (oauth_user.customer_id, "SERVICE", None)
    assert access.scopes == {"pockets.read"}


async def test_a_service_user_cannot_request_more_scopes_than_granted(robot, bank):
    form = {"grant_type": "client_credentials", "scope": "pockets.write"}
    refused(await robot.ask_token(form), "invalid_scope")
    assert await counts(bank) == [0, 0]


async def test_a_service_user_cannot_start_an_authorization_request(robot):
    refused(await robot.push(), "invalid_request")
