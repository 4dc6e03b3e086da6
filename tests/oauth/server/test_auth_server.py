"""Client authentication, and the ways it fails."""

import time
from datetime import timedelta

from tests.support.oauth import ISSUER, KEYS, PAR, TOKEN, base64url, from_now, new_key, refused

from billfold.oauth import clients, dpop
from billfold.platform.clock import wall_now

SECOND = timedelta(seconds=1)
"""Claims are told from now on: tests are collected minutes before they run."""


async def left_behind(bank):
    """Return the number of stored requests, tokens and used assertions."""
    return [
        await bank.pool.fetchval(f"SELECT count(*) FROM {table}")
        for table in ("oauth_authorization_request", "access_token", "consumed_assertion", "consumed_dpop_proof")
    ]


async def test_a_client_assertion_with_a_wrong_claim_is_refused(books_client, bank):
    for changed in [
        {"aud": ISSUER + TOKEN},
        {"aud": [ISSUER]},
        {"aud": "https://other.example"},
        {"aud": None},
        {"sub": None},
        {"sub": "other"},
        {"iss": "other"},
        {"iss": 7},
        {"iss": "nul\x00"},
        {"exp": None},
        {"exp": -30 * SECOND},
        {"exp": 330 * SECOND},
        {"exp": 3600 * SECOND},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 1e30},
        {"iat": 120 * SECOND},
        {"nbf": 120 * SECOND},
        {"iat": "now"},
        {"jti": None},
        {"jti": ""},
        {"jti": "x" * 256},
    ]:
        answer = await books_client.push(proving={"client_assertion": books_client.assertion(**from_now(changed))})
        refused(answer, "invalid_client", 401)
        assert await left_behind(bank) == [0, 0, 0, 0]


async def test_a_client_assertion_valid_from_now_or_earlier_is_accepted(books_client):
    for seconds in [-300, 0, 10]:
        now = int(time.time())
        assertion = books_client.assertion(iat=now + seconds, nbf=now + seconds)
        assert (await books_client.push(proving={"client_assertion": assertion})).status_code == 201


async def test_a_client_assertion_with_a_wrong_header_is_refused(books_client, bank):
    for header in [
        {"alg": "none"},
        {"alg": "RS256"},
        {"alg": "HS256"},
        {"alg": "PS256"},
        {"kid": "unknown"},
        {"kid": 7},
        {"crit": ["exp"]},
        {"typ": "dpop+jwt"},
        {"alg": None},
    ]:
        assertion = books_client.assertion(header=header)
        answer = await books_client.push(proving={"client_assertion": assertion})
        refused(answer, "invalid_client", 401)
        assert await left_behind(bank) == [0, 0, 0, 0]


async def test_a_client_assertion_by_ed25519_is_accepted_under_both_algorithm_names(relying):
    books_client = await relying("books", keys=("EdDSA",), requires_nonce=False)
    books_client.key = KEYS["EdDSA"]
    for name in ("EdDSA", "Ed25519"):
        proving = {"client_assertion": books_client.assertion(header={"alg": name})}
        assert (await books_client.push(proving=proving)).status_code == 201


async def test_keys_embedded_in_a_client_assertion_are_ignored(books_client, bank):
    mine = new_key()
    for header in (
        {"jwk": mine.jwk},
        {"jku": "https://127.0.0.1:1/keys"},
        {"x5u": "https://127.0.0.1:1/cert"},
        {"jwk": mine.jwk, "kid": KEYS["ES256"].thumbprint},
    ):
        assertion = books_client.assertion(key=mine, header=header)
        answer = await books_client.push(proving={"client_assertion": assertion})
        refused(answer, "invalid_client", 401)


async def test_client_authentication_other_than_private_key_jwt_is_refused(books_client, bank):
    for changed in [
        {"client_assertion": None},
        {"client_assertion": "no JWT"},
        {"client_assertion": "x" * 9000},
        {"client_assertion": "[" * 3000 + ".e30.AAAA"},
        {"client_assertion_type": None},
        {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"},
        {"client_id": "other"},
        {"client_secret": "a secret"},
        {"client_assertion": None, "client_assertion_type": None, "client_secret": "a secret"},
    ]:
        refused(await books_client.push(proving=changed), "invalid_client", 401)
        assert await left_behind(bank) == [0, 0, 0, 0]


async def test_basic_authentication_is_refused(books_client):
    form = books_client.authenticated(books_client.asked())
    answer = await books_client.post(PAR, form, authorization="Basic Ym9va3M6c2VjcmV0")
    refused(answer, "invalid_client", 401)


async def test_a_client_assertion_for_a_different_client_is_refused(books_client, relying):
    other = await relying("other", keys=("EdDSA",), requires_nonce=False)
    other.key = KEYS["EdDSA"]
    refused(await books_client.push(proving={"client_assertion": other.assertion()}), "invalid_client", 401)
    forged = other.assertion(iss="books", sub="books")
    refused(await books_client.push(proving={"client_assertion": forged}), "invalid_client", 401)


async def test_a_client_assertion_is_accepted_once(books_client, bank):
    sent = {"client_assertion": books_client.assertion()}
    assert (await books_client.push(proving=sent)).status_code == 201
    refused(await books_client.push(proving=sent), "invalid_client", 401)
    assert (await left_behind(bank))[0] == 1


async def test_the_client_id_is_taken_from_the_assertion_when_omitted(books_client):
    assert (await books_client.push(proving={"client_id": None})).status_code == 201


async def test_an_assertion_of_a_documented_profile_client_is_valid_for_an_hour_and_accepted_once(ledger_client, bank):
    assertion = ledger_client.assertion(exp=int(time.time()) + 3600)
    assert (await ledger_client.push(proving={"client_assertion": assertion})).status_code == 201
    refused(await ledger_client.push(proving={"client_assertion": assertion}), "invalid_client", 401)
    burnt = await bank.pool.fetchval("SELECT expires_at > now() + interval '59 minutes' FROM consumed_assertion")
    assert burnt is True
    later = ledger_client.assertion(exp=int(time.time()) + 3700)
    refused(await ledger_client.push(proving={"client_assertion": later}), "invalid_client", 401)


async def test_a_documented_profile_client_may_use_the_token_endpoint_as_audience(ledger_client):
    for audience in (ISSUER, ISSUER + TOKEN):
        assertion = ledger_client.assertion(aud=audience)
        assert (await ledger_client.push(proving={"client_assertion": assertion})).status_code == 201
    wrong = {"client_assertion": ledger_client.assertion(aud=ISSUER + PAR)}
    refused(await ledger_client.push(proving=wrong), "invalid_client", 401)


async def test_revoking_a_client_invalidates_its_assertions_and_tokens(books_client, bank):
    tokens = await books_client.tokens()
    async with bank.pool.acquire() as conn:
        await clients.revoke_client(conn, "books", now=wall_now())
    refused(await books_client.push(), "invalid_client", 401)
    assert not await books_client.is_good(tokens["access_token"])
    assert (await books_client.browse(**books_client.asked())).status_code == 400


async def test_both_client_keys_are_accepted_during_rotation(books_client, bank):
    following = new_key("EdDSA")
    async with bank.pool.acquire() as conn:
        await clients.rotate_client_key(conn, "books", following.pem, now=wall_now())
    for key in (KEYS["ES256"], following):
        books_client.key = key
        assert (await books_client.push()).status_code == 201
    await bank.pool.execute("UPDATE client_key SET expires_at = now() WHERE expires_at IS NOT NULL")
    books_client.key = KEYS["ES256"]
    refused(await books_client.push(), "invalid_client", 401)


async def test_the_kid_selects_the_client_key(books_client, bank):
    second = new_key()
    await clients.add_client_key(bank.pool, "books", second.pem, now=wall_now(), key_id="second")
    good = books_client.assertion(key=second, header={"kid": "second"})
    assert (await books_client.push(proving={"client_assertion": good})).status_code == 201
    wrong = books_client.assertion(key=second, header={"kid": KEYS["ES256"].thumbprint})
    refused(await books_client.push(proving={"client_assertion": wrong}), "invalid_client", 401)


# -- proofs at the authorization server --------------------------------------------------


async def test_a_strict_client_without_a_dpop_proof_gets_no_token(books_client, bank):
    code = await books_client.code()
    before = await left_behind(bank)
    refused(await books_client.exchange(code, dpop=None), "invalid_dpop_proof")
    refused(await books_client.exchange(code, dpop="no proof"), "invalid_dpop_proof")
    assert await left_behind(bank) == before
    assert (await books_client.exchange(code)).status_code == 200


async def test_a_token_request_with_an_invalid_dpop_proof_changes_nothing(books_client, bank):
    for changed in [{"iat": -3600 * SECOND}, {"htu": ISSUER + PAR}, {"htm": "GET"}, {"header": {"jwk": new_key().jwk}}]:
        code = await books_client.code()
        before = await left_behind(bank)
        refused(
            await books_client.exchange(code, dpop=books_client.proof_for(TOKEN, **from_now(changed))),
            "invalid_dpop_proof",
        )
        assert await left_behind(bank) == before


async def test_a_forged_host_header_does_not_change_the_expected_dpop_url(books_client):
    code = await books_client.code()
    form = books_client.authenticated(
        {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": books_client.verifier,
            "redirect_uri": "https://books.example/callback",
        }
    )
    evil = {"host": "evil.example", "x-forwarded-host": "evil.example"}
    stolen = books_client.proof_for(TOKEN, htu="https://evil.example" + TOKEN)
    refused(await books_client.post(TOKEN, form, dpop=stolen, **evil), "invalid_dpop_proof")
    good = await books_client.post(TOKEN, form, dpop=books_client.proof_for(TOKEN), **evil)
    assert good.status_code == 200


async def test_a_dpop_proof_at_the_token_endpoint_is_accepted_once(books_client):
    sent = books_client.proof_for(TOKEN)
    assert (await books_client.exchange(await books_client.code(), dpop=sent)).status_code == 200
    code = await books_client.code()
    refused(await books_client.exchange(code, dpop=sent), "invalid_dpop_proof")
    assert (await books_client.exchange(code)).status_code == 200


async def test_a_dpop_nonce_challenge_consumes_no_code_or_assertion(relying, bank):
    strict = await relying("strict")
    code = await strict.code()
    before = await left_behind(bank)
    assertion = strict.assertion()

    first = await strict.exchange(code, proving={"client_assertion": assertion})
    refused(first, "use_dpop_nonce")
    nonce = first.headers["dpop-nonce"]
    assert await left_behind(bank) == before

    again = await strict.exchange(
        code, dpop=strict.proof_for(TOKEN, nonce=nonce), proving={"client_assertion": assertion}
    )
    assert again.status_code == 200
    assert again.headers["dpop-nonce"]


async def test_a_stale_nonce_is_refused_with_a_fresh_one(relying):
    strict = await relying("strict")
    answer = await strict.push(dpop=strict.proof_for(PAR, nonce=base64url(bytes(32))))
    refused(answer, "use_dpop_nonce")
    good = strict.proof_for(PAR, nonce=answer.headers["dpop-nonce"])
    assert (await strict.push(dpop=good)).status_code == 201


async def test_used_dpop_proofs_are_remembered_longer_than_they_are_valid(books_client, bank):
    issued = int(time.time()) + 10
    sent = books_client.proof_for(TOKEN, iat=issued)
    assert (await books_client.exchange(await books_client.code(), dpop=sent)).status_code == 200
    kept = await bank.pool.fetchval("SELECT max(expires_at) FROM consumed_dpop_proof")
    assert kept.timestamp() > issued + dpop.LEEWAY_SECONDS + 1
