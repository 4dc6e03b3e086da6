"""Daily limits of actions through the APIs: per customer, and per partner over all its customers."""

import pytest
from tests.support.applications import V1, V2, Applicant
from tests.support.cards import Holder
from tests.support.payees import ach
from tests.support.whole_bank import with_limits

LIMIT = "usage-limit-reached"
TWICE = 2


def counterparties(desk, pocket):
    return "POST", f"/api/v2/customers/{pocket.customer}/counterparties/", ach(), 201


def account_links(desk, pocket):
    path = f"/api/v1/customers/{pocket.customer}/counterparties/linking-provider/link-token/"
    return "POST", path, {"client_name": "Acme", "redirect_uri": "https://acme.example/back"}, 200


def linked_accounts(desk, pocket):
    path = f"/api/v1/customers/{pocket.customer}/counterparties/linking-provider/"
    return "POST", path, {"public_token": "public-sandbox-1", "accounts": [{"id": "checking"}]}, 201


def ordered_cards(desk, pocket):
    return "POST", *Holder(desk, pocket).order(), 201


def virtual_cards(desk, pocket):
    return "POST", *Holder(desk, pocket).new_virtual_card(), 201


def portals(desk, pocket):
    return "POST", f"/api/v2/pockets/{pocket.id}/portals/", {"name": "Fees"}, 201


ACTIONS = {
    portals: "portals",
    counterparties: "counterparties",
    account_links: "account_links",
    linked_accounts: "account_links",
    ordered_cards: "cards",
    virtual_cards: "cards",
}


@pytest.fixture
async def places(partner_desks):
    """Desk and Pocket of two customers of one partner, and of one of another."""
    desks = [await partner_desks(slug) for slug in ("acme", "globex")]
    return [(desk, await desk.pocket()) for desk in (desks[0], *desks)]


async def do_action(action, place, *, status=None):
    """Do it; return the answer."""
    desk, pocket = place
    method, path, body, made = action(desk, pocket)
    return await desk.ask(method, path, body, status=status or made)


async def expect_limit(action, place, limit):
    """Check that a limit refuses it, and says how long to wait."""
    answer = await do_action(action, place, status=429)
    problem = answer.json()
    assert (problem["code"], problem["limit"]) == (LIMIT, limit)
    assert 0 < int(answer.headers["retry-after"]) <= 86_400 + 1


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_daily_customer_limit_does_not_affect_other_customers(bank, places, action):
    limit = f"{ACTIONS[action]}.customer"
    with_limits(bank, {limit: TWICE})
    first, *others = places
    for _ in range(TWICE):
        await do_action(action, first)
    await expect_limit(action, first, limit)
    for each in others:
        await do_action(action, each)


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_daily_partner_limit_covers_its_customers_and_not_those_of_other_partners(bank, places, action):
    limit = f"{ACTIONS[action]}.partner"
    with_limits(bank, {limit: TWICE})
    *both, stranger = places
    for each in both:
        await do_action(action, each)
    for each in both:
        await expect_limit(action, each, limit)
    for _ in range(TWICE):
        await do_action(action, stranger)


async def test_actions_over_a_limit_are_not_executed_or_counted(bank, places):
    with_limits(bank, {"counterparties.customer": 1, "counterparties.partner": TWICE})
    first, second, _ = places
    await do_action(counterparties, first)
    for _ in range(3):
        await expect_limit(counterparties, first, "counterparties.customer")
    await do_action(counterparties, second)
    await expect_limit(counterparties, second, "counterparties.customer")
    assert await bank.pool.fetchval("SELECT count(*) FROM counterparty") == TWICE


async def test_linking_more_accounts_than_the_limit_is_refused_before_calling_the_provider(bank, places):
    with_limits(bank, {"account_links.customer": 1})
    (desk, pocket), *_ = places
    path, body = linked_accounts(desk, pocket)[1:3]
    both = body | {"accounts": [{"id": "checking"}, {"id": "savings"}]}
    await desk.refused("POST", path, both, status=429, code=LIMIT)
    assert await bank.pool.fetchval("SELECT count(*) FROM counterparty") == 0
    await desk.post(path, body)


async def test_a_daily_application_limit_is_counted_per_customer(bank, customer_desk, other_customer):
    with_limits(bank, {"application_checks.customer": 1})
    for desk in (customer_desk, other_customer):
        applicant = Applicant(desk, V2)
        first, second = await applicant.simple(), await applicant.simple()
        await applicant.apply(first)
        path = applicant.path(second, "apply")
        problem = await desk.refused("POST", path, {}, status=429, code=LIMIT)
        assert problem["limit"] == "application_checks.customer"
        assert (await applicant.get(second))["status"] == "CREATED"


async def test_a_daily_application_limit_is_counted_per_partner(bank, partner_desks):
    with_limits(bank, {"application_checks.partner": 1, "application_checks.customer": 0})
    for slug in ("acme", "globex"):
        applicant = Applicant(await partner_desks(slug), V1)
        first, second = await applicant.simple(), await applicant.simple()
        await applicant.apply(first)
        path = applicant.path(second, "apply")
        problem = await applicant.desk.refused("POST", path, {}, status=429, code=LIMIT)
        assert problem["limit"] == "application_checks.partner"
