"""Logging in with a password."""

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.support.world import PASSWORD, PartnerClient, new_partner

from billfold.http import counts
from billfold.identity.partners import credentials, login_routes, rules
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused

LOGIN = "/api/v1/login/"


async def log_in(client, password=PASSWORD, username="acme-app"):
    return await client.http.post(LOGIN, json={"username": username, "password": password})


async def test_login_with_the_right_password_returns_a_one_hour_token(client, bank):
    answer = await log_in(client)
    assert answer.status_code == 200
    expires = datetime.fromisoformat(answer.json()["expires"])
    assert expires.utcoffset() is not None
    assert timedelta(minutes=59) < expires - wall_now() <= timedelta(hours=1)
    stored = await bank.pool.fetchval("SELECT count(*) FROM partner_token")
    assert stored == 2
    client.partner.token = answer.json()["token"]
    assert (await client.get("/api/v1/nothing/")).status_code == 404


@pytest.mark.parametrize(
    ("network", "allowed"),
    [("127.0.0.1", True), ("127.0.0.0/8", True), ("10.0.0.0/8", False), ("::1", False), ("::/0", False)],
)
async def test_partner_calls_and_logins_are_allowed_only_from_listed_networks(world, network, allowed):
    listed = ["203.0.113.7/32", rules.parse_network(network)]
    client = world.client
    await credentials.set_allowed_networks(world.bank.pool, client.partner.partner_id, listed)
    answers = [await client.get("/api/v1/customers/"), await log_in(client)]
    assert {each.status_code for each in answers} == {200 if allowed else 403}
    if not allowed:
        assert {each.json()["code"] for each in answers} == {"ip-not-allowed"}
        # Who has no token, or a wrong signature, learns nothing of the list.
        assert (await client.http.get("/api/v1/customers/")).status_code == 401
        assert (await log_in(client, "wrong")).status_code == 401


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("2001:db8::1", True), ("2001:db9::1", False), ("::ffff:203.0.113.7", True), ("203.0.113.8", False), ("x", False)],
)
def test_ipv4_and_ipv6_addresses_are_matched_against_the_allowed_networks(address, allowed):
    listed = [rules.parse_network(each) for each in ("2001:db8::/32", "203.0.113.7")]
    if allowed:
        rules.require_allowed_address(address, listed)
    else:
        with pytest.raises(Refused, match="ip-not-allowed"):
            rules.require_allowed_address(address, listed)


async def test_login_without_a_trailing_slash_works(client):
    body = {"username": "acme-app", "password": PASSWORD}
    assert (await client.http.post("/api/v1/login", json=body)).status_code == 200


@pytest.mark.parametrize("username", ["acme-app", "nobody"])
async def test_the_sixth_login_attempt_is_locked_out_even_with_the_right_password(client, username):
    for _ in range(5):
        answer = await log_in(client, "wrong", username)
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid-credentials")
        assert "www-authenticate" in answer.headers
    answer = await log_in(client, PASSWORD, username)
    assert (answer.status_code, answer.json()["code"]) == (429, "login-locked")
    assert 0 < int(answer.headers["retry-after"]) <= 15 * 60


async def test_failed_logins_from_a_foreign_network_do_not_lock_known_networks(app, client):
    assert (await log_in(client)).status_code == 200
    stranger = PartnerClient(app, client.partner, address="198.51.100.7")
    for _ in range(5):
        assert (await log_in(stranger, "wrong")).status_code == 401
    assert (await log_in(stranger, PASSWORD)).status_code == 429
    assert (await log_in(client)).status_code == 200
    for _ in range(5):
        await log_in(client, "wrong")
    assert (await log_in(client)).status_code == 429
    await stranger.close()


async def test_a_username_that_starts_with_a_network_does_not_lock_that_network(app, client):
    assert (await log_in(client)).status_code == 200
    stranger = PartnerClient(app, client.partner, address="198.51.100.7")
    for _ in range(5):
        assert (await log_in(stranger, "wrong", "127.0.0.1 acme-app")).status_code == 401
    assert (await log_in(client)).status_code == 200
    await stranger.close()


async def test_failed_logins_from_unlisted_networks_do_not_lock_listed_ones(app, bank, client):
    await bank.pool.execute("UPDATE partner SET allowed_networks = ARRAY['127.0.0.1/32'::cidr]")
    stranger = PartnerClient(app, client.partner, address="198.51.100.7")
    answers = [(await log_in(stranger, "wrong")).status_code for _ in range(6)]
    assert answers == [401] * 5 + [429]
    assert (await log_in(client)).status_code == 200
    await stranger.close()


async def test_a_login_lock_ends_after_fifteen_minutes(client, bank):
    for _ in range(5):
        await log_in(client, "wrong")
    await bank.pool.execute("UPDATE login_attempt SET last_failed_at = $1", wall_now() - timedelta(minutes=15))
    assert (await log_in(client, "wrong")).status_code == 401
    assert (await log_in(client)).status_code == 200
    for _ in range(4):
        await log_in(client, "wrong")
    assert (await log_in(client)).status_code == 200


async def test_login_on_the_host_of_a_different_partner_is_refused(app, bank, client):
    await new_partner(bank, "other")
    elsewhere = PartnerClient(app, client.partner, host="other.localhost")
    assert (await log_in(elsewhere)).json()["code"] == "invalid-credentials"
    await elsewhere.close()
    by_address = PartnerClient(app, client.partner, host="127.0.0.1:8443")
    assert (await log_in(by_address)).status_code == 200
    await by_address.close()


async def test_a_malformed_login_body_is_refused(client):
    for body in [
        {},
        {"username": "a"},
        {"username": "", "password": "a"},
        {"username": 1, "password": "a"},
        {"username": "a", "password": "b" * 129},
        {"username": "a", "password": "b", "x": 1},
    ]:
        answer = await client.http.post(LOGIN, json=body)
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"][0] == "body"


async def test_logins_from_one_ip_address_are_rate_limited(client, monkeypatch):
    monkeypatch.setattr(counts.count_address, "__kwdefaults__", {"limit": 3})
    answers = [(await log_in(client, "wrong", f"user-{n}")).json()["code"] for n in range(5)]
    assert answers.count("rate-limited") >= 1
    assert set(answers) == {"invalid-credentials", "rate-limited"}


@pytest.mark.parametrize("path", [LOGIN, "/token/"])
async def test_an_unreadable_login_body_counts_toward_the_rate_limit(client, monkeypatch, path):
    monkeypatch.setattr(counts.count_address, "__kwdefaults__", {"limit": 2})
    answers = [await client.http.post(path, content=b"[" * 15_000 + b'\\"' * 7_500) for _ in range(4)]
    assert [answer.status_code for answer in answers[-2:]] == [429, 429]
    assert {answer.status_code for answer in answers} <= {400, 429}


async def test_login_with_an_unknown_name_also_verifies_a_password(client, unknown_accounts):
    """Verification dominates the response time, so both cases take equally long."""
    for username in ("acme-app", "nobody"):
        await log_in(client, "wrong", username)
    assert unknown_accounts == [False, True]


async def test_a_login_password_never_appears_in_logs_or_tables(client, bank, caplog):
    canary = "a-canary-password-7431"
    await log_in(client, canary)
    await client.http.post(LOGIN, json={"username": canary, "password": canary, "x": canary})
    assert canary not in caplog.text
    assert canary not in repr(login_routes.LoginRequest("someone", canary))
    rows = await bank.pool.fetch("SELECT * FROM partner_user")
    assert PASSWORD not in str(rows)


async def test_concurrent_correct_logins_all_succeed(client):
    answers = await asyncio.gather(*(log_in(client) for _ in range(12)))
    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("username", ["acme-app", "nobody"])
async def test_concurrent_wrong_passwords_are_verified_at_most_five_times(client, username, unknown_accounts):
    answers = await asyncio.gather(*(log_in(client, f"wrong {n}", username) for n in range(40)))
    assert sorted(answer.status_code for answer in answers) == [401] * 5 + [429] * 35
    assert len(unknown_accounts) == 5
    assert (await log_in(client, PASSWORD, username)).json()["code"] == "login-locked"


async def test_logins_failures_and_the_lock_are_in_the_audit_log_of_the_partner(client, audit_log):
    await log_in(client)
    for _ in range(6):
        await log_in(client, "wrong")
    await log_in(client, "wrong", "nobody")
    assert await audit_log() == [
        ("user.login", "SUCCESS", {"username": "acme-app", "proved": "password"}),
        *[("user.login", "FAILURE", {"username": "acme-app", "wrong": "password"})] * 5,
        ("user.locked", "FAILURE", {"username": "acme-app"}),
    ]
