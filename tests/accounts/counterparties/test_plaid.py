"""Accounts linked through Plaid, by the Partner API: the server answers in the shapes of its documentation."""

import asyncio
from datetime import timedelta

import pytest
from tests.support.events import answer
from tests.support.plaid_server import ACCESS, CLIENT_ID, SECRET, account, json_answer, plaid, refusal

from billfold.accounts.counterparties.ports import LinkingProvider

BODY = {"client_name": "Acme", "redirect_uri": "https://acme.example/back"}
TOKEN = "public-production-1"
KEY = "5f0c0000-0000-4000-8000-000000000001"
MANUAL = "PENDING_MANUAL_VERIFICATION"


@pytest.fixture
async def server(bank):
    async with plaid() as (server, provider):
        bank.ports[LinkingProvider] = provider
        yield server


@pytest.fixture
async def path(world):
    return f"/api/v1/customers/{(await world.pocket()).customer}/counterparties/"


def link(*accounts, token=TOKEN):
    return {"public_token": token, "accounts": [{"id": each} for each in accounts]}


async def shown(desk, path):
    """Return the counterparties of a customer as v1 shows them: status, provider status, number."""
    listed = (await desk.get(path))["counterparties"]
    accounts = [each["ach"] for each in listed]
    return [(a["status"], a["linking_provider"]["verification_status"], a["account_number"]) for a in accounts]


async def test_plaid_accounts_are_linked_with_the_numbers_of_their_bank(bank, server, world, path, capsys):
    server.has(account("checking"), account("savings", subtype="savings"))
    opened = await world.post(f"{path}linking-provider/link-token/", BODY, status=200)
    assert opened == {"link_token": "link-production-af1a0311", "expiration": "2027-03-27T12:56:34Z"}
    made = (await world.post(f"{path}linking-provider/", link("savings", "checking")))["items"]
    again = BODY | {"counterparty_id": made[0]["id"]}
    await world.post(f"{path}linking-provider/link-token/", again, status=200)

    facts = ("status", "account_type", "account_number", "routing_number", "institution_name")
    common = ("9900009606", "011401533", "Royal Bank of Plaid")
    assert [tuple(each[name] for name in facts) for each in made] == [
        ("LINKED", "SAVINGS", *common),
        ("LINKED", "CHECKING", *common),
    ]
    first, repeated = (body for called, _, body in server.requests if called == "/link/token/create")
    assert first["products"] == ["auth"]
    assert (first["redirect_uri"], first["user"]["client_user_id"]) == (BODY["redirect_uri"], path.split("/")[4])
    assert repeated["access_token"] == ACCESS
    assert "products" not in repeated
    await world.invalid("POST", f"{path}linking-provider/", link("savings"), loc="body.public_token")
    stored = [
        str(row)
        for table in ("counterparty", "command", "linking_exchange", "audit_entry", "idempotency_key")
        for row in await bank.pool.fetch(f"SELECT * FROM {table}")
    ]
    for secret in (ACCESS, SECRET, CLIENT_ID):
        assert secret not in "".join(stored) + "".join(capsys.readouterr())


async def test_a_plaid_account_awaiting_a_deposit_gets_its_numbers_when_verified(server, world, path):
    server.has(account("a", "pending_manual_verification"), numbers=False)
    (made,) = (await world.post(f"{path}linking-provider/", link("a")))["items"]
    verify = f"{path}{made['id']}/linking-provider/verify/"
    assert await shown(world, path) == [("IN_PROGRESS", MANUAL, None)]
    for status, numbers, expected in (
        ("pending_manual_verification", False, ("IN_PROGRESS", MANUAL, None)),
        ("manually_verified", False, ("IN_PROGRESS", "PENDING_AUTOMATIC_VERIFICATION", None)),
        ("manually_verified", True, ("VERIFIED", "MANUALLY_VERIFIED", "9900009606")),
        ("verification_failed", True, ("VERIFIED", "MANUALLY_VERIFIED", "9900009606")),
    ):
        server.has(account("a", status), numbers=numbers)
        await world.ask("POST", verify, {}, status=204)
        assert await shown(world, path) == [expected]


async def test_plaid_verification_statuses_map_to_ours_and_unknown_ones_to_pending(server, world, path):
    expected = {
        None: "AUTOMATICALLY_VERIFIED",
        "database_insights_pass_with_caution": "VERIFICATION_FAILED",
        "unsent": MANUAL,
        "verification_expired": "VERIFICATION_EXPIRED",
        "verified_by_a_word_of_next_year": "PENDING_AUTOMATIC_VERIFICATION",
    }
    server.has(*(account(str(status), status) for status in expected))
    await world.post(f"{path}linking-provider/", link(*map(str, expected)))
    seen = [status for _, status, _ in await shown(world, path)]
    assert sorted(seen) == sorted(expected.values())


async def test_an_interrupted_plaid_request_is_retried_although_its_token_is_single_use(bank, server, world, path):
    server.has(account("a"))
    server.instead["/auth/get"] = [None, answer(502, body=b"<html>")]
    refused = await world.ask("POST", f"{path}linking-provider/", link("a"), key=KEY, status=503)
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("unavailable", "5")
    await world.post(f"{path}linking-provider/", link("a"), key=KEY)
    assert server.paths().count("/item/public_token/exchange") == 1
    assert await bank.pool.fetchval("SELECT count(*) FROM linking_exchange") == 0


REFUSALS = [
    ("/item/public_token/exchange", refusal("INVALID_PUBLIC_TOKEN"), (422, "body.public_token")),
    ("/item/public_token/exchange", refusal("RATE_LIMIT", 429), (503, "unavailable")),
    ("/item/public_token/exchange", refusal("INVALID_API_KEYS"), (503, "unavailable")),
    ("/item/public_token/exchange", refusal("INTERNAL_SERVER_ERROR", 500), (503, "unavailable")),
    ("/item/public_token/exchange", answer(302, "location: http://127.0.0.1/"), (503, "unavailable")),
    ("/auth/get", refusal("INVALID_ACCOUNT_ID"), (422, "body.accounts")),
    ("/auth/get", refusal("NO_AUTH_ACCOUNTS"), (422, "body.accounts")),
    ("/auth/get", refusal("ITEM_LOGIN_REQUIRED"), (409, "link-login-required")),
    ("/auth/get", json_answer({"accounts": []}), (422, "body.accounts")),
    ("/auth/get", json_answer({"accounts": [account("a")]}), (422, "body.accounts")),
    ("/auth/get", json_answer({"accounts": [account("a", subtype="cd")]}), (422, "body.accounts")),
    ("/auth/get", json_answer({"accounts": [account("a", kind="credit")]}), (422, "body.accounts")),
    ("/auth/get", json_answer({"accounts": "none"}), (503, "unavailable")),
    ("/auth/get", answer(body=b" " * 2**21), (503, "unavailable")),
]
"""What a path answers, and the status, with the code or the place of it, that follows."""


async def test_a_plaid_error_is_reported_at_its_field_or_with_its_code(server, world, path):
    server.has(account("a"))
    for number, (called, said, (status, reason)) in enumerate(REFUSALS):
        server.instead = {called: [said]}
        body = link("a", token=f"public-production-{number}")
        answered = (await world.ask("POST", f"{path}linking-provider/", body, status=status)).json()
        places = [".".join(each["loc"]) for each in answered.get("detail", ()) if isinstance(each, dict)]
        assert reason in {answered.get("code"), *places}, said
        assert ACCESS not in str(answered)
    assert (await world.get(path))["count"] == 0


async def test_plaid_accounts_with_invalid_numbers_are_not_linked(server, world, path):
    for wrong in ({"account": "99-06"}, {"routing": "123456789"}):
        server.numbers["a"] = wrong
        server.has(account("a"))
        await world.invalid("POST", f"{path}linking-provider/", link("a"), loc="body.accounts")


async def test_a_link_that_requires_login_stays_pending_until_the_user_signs_in_again(server, world, path):
    server.has(account("a", "pending_automatic_verification"))
    (made,) = (await world.post(f"{path}linking-provider/", link("a")))["items"]
    verify = f"{path}{made['id']}/linking-provider/verify/"
    server.instead["/auth/get"] = [refusal("ITEM_LOGIN_REQUIRED")]
    await world.refused("POST", verify, {}, status=409, code="link-login-required")
    assert (await shown(world, path))[0][:2] == ("IN_PROGRESS", "PENDING_AUTOMATIC_VERIFICATION")
    server.accounts.clear()
    await world.ask("POST", verify, {}, status=204)
    assert (await shown(world, path))[0][:2] == ("FAILED", "VERIFICATION_FAILED")


async def test_a_hanging_link_provider_times_out_without_blocking_other_requests(bank, world, path):
    async with plaid(deadline=timedelta(milliseconds=300)) as (server, provider):
        bank.ports[LinkingProvider] = provider
        hanging = asyncio.Event()
        server.instead["/link/token/create"] = [hanging.wait] * 30
        token = f"{path}linking-provider/link-token/"
        waiting = [asyncio.create_task(world.send("POST", token, BODY)) for _ in range(30)]
        await world.get(path)
        assert {each.status_code for each in await asyncio.gather(*waiting)} == {503}


async def test_linking_without_a_configured_provider_is_refused(bank, world, path):
    bank.ports[LinkingProvider] = None
    for rest, body in (("link-token/", BODY), ("", link("a"))):
        await world.refused(
            "POST", f"{path}linking-provider/{rest}", body, status=409, code="linking-provider-not-configured"
        )


async def test_check_reports_the_plaid_address_and_credentials(server, bank):
    assert await bank.ports[LinkingProvider].check() == ""
    server.instead["/institutions/get"] = [refusal("INVALID_API_KEYS")]
    assert await bank.ports[LinkingProvider].check() == "refuses the credentials: INVALID_API_KEYS"
