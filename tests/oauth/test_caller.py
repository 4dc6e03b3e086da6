"""Requests to the Customer API: authentication, permissions, rate limits and idempotency."""

import asyncio
import logging
from typing import Any
from uuid import UUID

from tests.support.oauth import member, new_key
from tests.support.world import Team, Token, token_for
from tests.support.world import new_key as idempotency_key

from billfold.oauth import grants, signing_keys
from billfold.platform import ids
from billfold.platform.clock import wall_now

PATH = "/api/v1/customer/"
POCKETS = "/api/v2/pockets/"
_GRANT = """
INSERT INTO oauth_grant (grant_id, client_id, user_id, customer_id, scopes, created_at, renewed_at)
VALUES ($1, $2, $3, $4, '{}', $5, $5)
"""
NEW = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}


async def refused(customer_desk, error, *, status=401, method="GET", path=PATH, **options):
    """Check that a request is refused with this error in its challenge; return the answer."""
    answer = await customer_desk.ask(method, path, status=status, **options)
    challenge = answer.headers["www-authenticate"]
    assert (f'error="{error}"' in challenge) if error else ("error" not in challenge)
    assert answer.json()["status"] == status
    return answer


async def test_a_bearer_token_is_accepted(customer_desk):
    token = await token_for(customer_desk.bank, customer_desk.team, key=None)
    assert (await customer_desk.ask("GET", PATH, status=200, token=token)).json()["name"] == "Northwind"
    await refused(customer_desk, "invalid_token", headers={"authorization": f"DPoP {token.text}"})


async def test_the_last_use_of_an_application_is_the_last_use_of_its_token(customer_desk):
    bank, team = customer_desk.bank, customer_desk.team
    grant_id = ids.new()
    await bank.pool.execute(_GRANT, grant_id, team.client_id, team.user_id, UUID(team.customer), wall_now())

    async def last_use():
        (granted,) = await grants.list_grants(bank.pool, team.user_id)
        return granted.last_used_at

    text = await grants.issue_access(
        bank.pool,
        client_id=team.client_id,
        customer_id=UUID(team.customer),
        scopes=team.scopes,
        now=wall_now(),
        user_id=team.user_id,
        grant_id=grant_id,
    )
    assert await last_use() is None
    before = wall_now()
    await asyncio.gather(*(customer_desk.ask("GET", PATH, status=200, token=Token(text, None)) for _ in range(5)))
    first = await last_use()
    assert before <= first <= wall_now()
    await customer_desk.ask("GET", PATH, status=200, token=Token(text, None))
    assert await last_use() == first
    await bank.pool.execute("UPDATE oauth_grant SET last_used_at = last_used_at - interval '2 minutes'")
    await customer_desk.ask("GET", PATH, status=200, token=Token(text, None))
    assert await last_use() > first
    await bank.pool.execute("UPDATE oauth_grant SET last_used_at = NULL")
    await customer_desk.ask("GET", PATH, status=401, token=None, headers={"authorization": f"DPoP {text}"})
    assert await last_use() is None


async def test_a_request_without_a_token_is_unauthorized(customer_desk):
    await refused(customer_desk, None, token=None)
    for sent in ("Bearer", "Bearer x", "DPoP x", "Basic eDp5", "Bearer a, Bearer b", "Bearer é"):
        headers = {"authorization": sent.encode()}
        await refused(customer_desk, "invalid_token", token=None, headers=headers)


async def test_a_bound_token_without_a_proof_by_its_own_key_is_refused(customer_desk):
    text = customer_desk.token.text
    await refused(customer_desk, "invalid_token", headers={"authorization": f"Bearer {text}"})
    await refused(customer_desk, "invalid_token", token=None, headers={"authorization": f"DPoP {text}"})
    await refused(customer_desk, "invalid_token", token=Token(text, new_key()))


async def test_a_dpop_proof_for_a_different_request_is_refused(customer_desk):
    changed: Any
    for changed in [
        {"htm": "POST"},
        {"htu": "https://api.localhost:8443/api/v1/user/"},
        {"htu": "https://evil.example/api/v1/customer/"},
        {"ath": None},
        {"ath": "x"},
        {"iat": 0},
        {"iat": "now"},
        {"jti": None},
    ]:
        headers = customer_desk.headers("GET", PATH, customer_desk.token, **changed)
        await refused(customer_desk, "invalid_dpop_proof", token=None, headers=headers)


async def test_an_id_token_is_not_accepted_as_access_token(customer_desk):
    now, bank, team = wall_now(), customer_desk.bank, customer_desk.team
    async with bank.pool.acquire() as conn:
        await signing_keys.ensure_signing_keys(conn, bank.vault, now)
        keys = await signing_keys.list_published_keys(conn, bank.vault, now)
    seconds = int(now.timestamp())
    claims = {
        "iss": bank.settings.auth_origin,
        "sub": str(team.user_id),
        "aud": team.client_id,
        "iat": seconds,
        "exp": seconds + 300,
        "scope": "customer.read",
    }
    signed = signing_keys.sign(keys, "PS256", claims, now=now)
    for key in (None, customer_desk.token.key):
        await refused(customer_desk, "invalid_token", token=Token(signed, key))


async def test_a_dpop_proof_is_accepted_once_even_concurrently(customer_desk):
    headers = customer_desk.headers("GET", PATH, customer_desk.token)
    answers = await asyncio.gather(*(customer_desk.send("GET", PATH, token=None, headers=headers) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401]
    await refused(customer_desk, "invalid_dpop_proof", token=None, headers=headers)


async def test_a_forged_host_header_does_not_change_the_expected_proof(customer_desk):
    forged = {"host": "evil.example", "x-forwarded-host": "evil.example"}
    await customer_desk.ask("GET", PATH, status=200, headers=forged)
    sent = customer_desk.headers("GET", PATH, customer_desk.token, htu=f"https://evil.example{PATH}")
    await refused(customer_desk, "invalid_dpop_proof", token=None, headers=sent | forged)


async def test_a_path_with_and_without_trailing_slash_needs_its_own_dpop_proof(customer_desk):
    bare = PATH.rstrip("/")
    await customer_desk.ask("GET", bare, status=200)
    sent = customer_desk.headers("GET", PATH, customer_desk.token)
    await refused(customer_desk, "invalid_dpop_proof", path=bare, token=None, headers=sent)


async def test_a_token_in_the_query_is_refused_and_never_logged(customer_desk, caplog, capsys):
    token = await token_for(customer_desk.bank, customer_desk.team, key=None)
    with caplog.at_level(logging.DEBUG):
        for options in ({}, {"token": token}):
            answer = await customer_desk.ask("GET", PATH, status=400, filters={"access_token": token.text}, **options)
            assert token.text not in answer.text
    out, err = capsys.readouterr()
    # Log lines of the test's own client are not the bank's.
    ours = [each.getMessage() for each in caplog.records if not each.name.startswith("http")]
    assert token.text not in "".join(ours) + out + err


async def test_a_fapi2_client_must_use_the_server_dpop_nonce(customer_desks):
    customer_desk = await customer_desks(client_id="strict", profile="fapi2")
    answer = await refused(customer_desk, "use_dpop_nonce")
    sent = customer_desk.headers("GET", PATH, customer_desk.token, nonce=answer.headers["dpop-nonce"])
    await customer_desk.ask("GET", PATH, status=200, token=None, headers=sent)
    stale = customer_desk.headers("GET", PATH, customer_desk.token, nonce="x")
    await refused(customer_desk, "use_dpop_nonce", token=None, headers=stale)


async def test_a_client_without_a_user_is_limited_by_its_scopes(customer_desk):
    alone = Team(customer_desk.team.customer, customer_desk.team.client_id, None)
    token = await token_for(customer_desk.bank, alone, scopes=("pockets.write",))
    await customer_desk.ask("POST", POCKETS, NEW, status=201, token=token)
    await customer_desk.ask("GET", POCKETS, status=403, token=token)


async def test_a_repeated_request_with_one_idempotency_key_runs_once(customer_desk):
    key = idempotency_key()
    first = await customer_desk.ask("POST", POCKETS, NEW, status=201, key=key)
    again = await customer_desk.ask("POST", POCKETS, NEW, status=201, key=key)
    assert first.content == again.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["x-service-idempotent-replay"] == "true"
    assert (await customer_desk.get(POCKETS))["count"] == 1


async def test_an_idempotency_key_is_optional_and_any_short_text(customer_desk):
    for key in ("invoice 7", '"invoice 8"', "x" * 255):
        made = await customer_desk.post(POCKETS, NEW, key=key)
        assert await customer_desk.post(POCKETS, NEW, key=key) == made
    assert (await customer_desk.post(POCKETS, NEW))["id"] != (await customer_desk.post(POCKETS, NEW))["id"]
    for key in ("", '""', "x" * 256):
        await customer_desk.invalid("POST", POCKETS, NEW, loc="header.idempotency-key", key=key)
    assert (await customer_desk.get(POCKETS))["count"] == 5


async def test_an_idempotency_key_belongs_to_its_client_and_user(customer_desks):
    one = await customer_desks()
    other = await customer_desks(one.team.customer)
    key = idempotency_key()
    first, second = [await each.post(POCKETS, NEW, key=key) for each in (one, other)]
    assert first["id"] != second["id"]


async def test_a_user_of_two_customers_has_separate_idempotency_keys_for_each(customer_desk, world, bank):
    other = await world.customer("Contoso")
    async with bank.pool.acquire() as conn:
        await member(conn, UUID(other), user_id=customer_desk.team.user_id)
    key = idempotency_key()
    mine = await customer_desk.post(POCKETS, NEW, key=key)
    theirs = await token_for(bank, Team(other, customer_desk.team.client_id, customer_desk.team.user_id))
    made = (await customer_desk.ask("POST", POCKETS, NEW, status=201, key=key, token=theirs)).json()
    assert (mine["customer_id"], made["customer_id"]) == (customer_desk.team.customer, other)


async def test_a_stored_response_is_not_replayed_to_an_unauthorized_token(customer_desk):
    key = idempotency_key()
    await customer_desk.post(POCKETS, NEW, key=key)
    token = await token_for(customer_desk.bank, customer_desk.team, scopes=("pockets.read",))
    answer = await customer_desk.ask("POST", POCKETS, NEW, status=403, key=key, token=token)
    assert "idempotent-replayed" not in answer.headers
    await customer_desk.post(POCKETS, NEW, key=key)


async def test_every_operation_group_has_its_own_rate_limit(customer_desk, monkeypatch):
    now = wall_now().replace(second=30)
    monkeypatch.setattr("billfold.http.admission.wall_now", lambda: now)
    answer = await customer_desk.ask("GET", POCKETS, status=200)
    assert answer.headers["x-ratelimit-limit"] == "120"
    assert answer.headers["x-ratelimit-remaining"] == "119"
    assert int(answer.headers["x-ratelimit-reset"]) % 60 == 0
    answers = await asyncio.gather(*(customer_desk.send("GET", POCKETS) for _ in range(125)))
    turned = [each for each in answers if each.status_code == 429]
    assert len(turned) == 6
    assert {each.json()["code"] for each in turned} == {"rate-limited"}
    assert all(1 <= int(each.headers["retry-after"]) <= 60 for each in turned)
    answer = await customer_desk.ask("GET", "/api/v2/portals/", status=200)
    assert answer.headers["x-ratelimit-remaining"] == "299"


async def test_rate_limits_are_counted_per_user_of_a_client(customer_desks, monkeypatch):
    one = await customer_desks()
    other = await customer_desks(one.team.customer)
    for customer_desk in (one, other):
        answer = await customer_desk.ask("GET", POCKETS, status=200)
        assert answer.headers["x-ratelimit-remaining"] == "119"
