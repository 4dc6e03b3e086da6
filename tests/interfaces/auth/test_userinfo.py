"""Who signed in, and every way to show a token that is refused."""

import pytest
from tests.domain.oauth.programs import hash_of, new_key, proof
from tests.interfaces.auth.relying import ISSUER

from billfold.domain import oauth
from billfold.kit.clock import wall_now

USER = "/api/v1/user"


@pytest.fixture
async def token(books):
    return (await books.tokens(scope="openid profile email"))["access_token"]


def refused(answer, error, code="unauthorized", scheme="DPoP"):
    """Check that an answer is 401 with a challenge."""
    assert answer.status_code == 401, answer.text
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith(scheme + " ")
    assert (f'error="{error}"' in challenge) if error else ("error=" not in challenge)
    assert answer.json()["code"] == code


async def test_a_person_is_told_as_far_as_was_granted(books, token, anna):
    told = (await books.userinfo(token)).json()
    assert told["sub"] == str(anna.user_id)
    assert (told["name"], told["member_id"]) == ("Anna Lind", str(anna.member_id))
    assert told["email_verified"] is True
    assert "phone_number" not in told
    slash = await books.userinfo(token, path=USER + "/")
    assert slash.json() == told


async def test_the_scheme_is_read_in_any_case(books, token):
    for scheme in ("DPoP", "dpop", "DPOP"):
        assert (await books.userinfo(token, scheme=scheme)).status_code == 200


async def test_a_bound_token_is_worth_nothing_without_its_key(books, token):
    refused(await books.userinfo(token, scheme="Bearer", dpop=None), "invalid_token")
    refused(await books.userinfo(token, scheme="Bearer"), "invalid_token")
    refused(await books.userinfo(token, dpop=None), "invalid_token")
    books.proof_key = new_key()
    refused(await books.userinfo(token), "invalid_token")


@pytest.mark.parametrize(
    "changed",
    [
        {"ath": None}, {"ath": hash_of("another")}, {"htm": "POST"}, {"iat": 0},
        {"htu": "https://evil.example" + USER}, {"header": {"typ": "JWT"}}, {"jti": None},
    ],
)  # fmt: skip
async def test_a_proof_that_does_not_hold_is_refused(books, token, changed):
    sent = proof("GET", ISSUER + USER, token=token, **changed)
    refused(await books.userinfo(token, dpop=sent), "invalid_dpop_proof", "invalid-dpop-proof")


async def test_a_proof_is_used_once(books, token):
    sent = proof("GET", ISSUER + USER, token=token)
    assert (await books.userinfo(token, dpop=sent)).status_code == 200
    refused(await books.userinfo(token, dpop=sent), "invalid_dpop_proof", "invalid-dpop-proof")


async def test_a_strict_client_is_given_a_nonce(relying):
    strict = await relying("strict")
    token = await oauth.issue_access(
        strict.bank.pool, client_id="strict", customer_id=strict.person.customer_id,
        user_id=strict.person.user_id, scopes=("openid",), now=wall_now(),
        jkt=strict.proof_key.thumbprint,
    )  # fmt: skip
    first = await strict.userinfo(token)
    refused(first, "use_dpop_nonce", "invalid-dpop-proof")
    sent = proof("GET", ISSUER + USER, token=token, nonce=first.headers["dpop-nonce"])
    assert (await strict.userinfo(token, dpop=sent)).status_code == 200


async def test_a_bearers_token_is_no_bound_one(ledger):
    token = (await ledger.tokens(dpop=None))["access_token"]
    refused(await ledger.userinfo(token), "invalid_token", scheme="Bearer")


async def test_no_token_is_told_apart_from_a_wrong_one(books, token, bank):
    refused(await books.http.get(USER), None)
    refused(await books.userinfo("no token of ours"), "invalid_token")
    refused(await books.http.get(USER, headers={"authorization": "Basic YTpi"}), "invalid_token")
    await bank.pool.execute(
        "UPDATE access_token SET issued_at = issued_at - interval '901 s', "
        "expires_at = expires_at - interval '901 s'"
    )
    refused(await books.userinfo(token), "invalid_token")


@pytest.mark.parametrize("query", ["access_token={}", "a=b&access%5Ftoken={}"])
async def test_a_token_in_the_address_is_refused_and_never_logged(books, token, query, capfd):
    answer = await books.http.get(f"{USER}?{query.format(token)}")
    assert answer.status_code == 400
    sent = proof("GET", ISSUER + USER, token=token)
    both = {"authorization": f"DPoP {token}", "dpop": sent}
    answer = await books.http.get(f"{USER}?{query.format(token)}", headers=both)
    assert answer.status_code == 400
    told = capfd.readouterr()
    assert token not in told.out + told.err + answer.text


async def test_a_token_in_a_form_is_no_token(books, token):
    refused(await books.http.post(USER, data={"access_token": token}), None)


async def test_a_token_without_a_scope_about_people_tells_nothing(books):
    token = (await books.tokens(scope="pockets.read"))["access_token"]
    answer = await books.userinfo(token)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="openid"' in answer.headers["www-authenticate"]
