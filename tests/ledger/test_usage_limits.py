"""What may be done so often a day, through the APIs: by a customer, and by all customers of a partner together."""

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


ACTIONS = {
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


async def done(action, place, *, status=None):
    """Do it; return the answer."""
    desk, pocket = place
    method, path, body, made = action(desk, pocket)
    return await desk.ask(method, path, body, status=status or made)


async def reached(action, place, limit):
    """Check that a limit refuses it, and says how long to wait."""
    answer = await done(action, place, status=429)
    problem = answer.json()
    assert (problem["code"], problem["limit"]) == (LIMIT, limit)
    assert 0 < int(answer.headers["retry-after"]) <= 86_400 + 1


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_customer_does_it_so_often_a_day_and_no_other_customer_waits(bank, places, action):
    limit = f"{ACTIONS[action]}.customer"
    with_limits(bank, {limit: TWICE})
    first, *others = places
    for _ in range(TWICE):
        await done(action, first)
    await reached(action, first, limit)
    for each in others:
        await done(action, each)


@pytest.mark.parametrize("action", ACTIONS)
async def test_customers_of_a_partner_do_it_so_often_a_day_and_those_of_another_go_on(bank, places, action):
    limit = f"{ACTIONS[action]}.partner"
    with_limits(bank, {limit: TWICE})
    *both, stranger = places
    for each in both:
        await done(action, each)
    for each in both:
        await reached(action, each, limit)
    for _ in range(TWICE):
        await done(action, stranger)


async def test_what_is_refused_is_neither_made_nor_counted(bank, places):
    with_limits(bank, {"counterparties.customer": 1, "counterparties.partner": TWICE})
    first, second, _ = places
    await done(counterparties, first)
    for _ in range(3):
        await reached(counterparties, first, "counterparties.customer")
    await done(counterparties, second)
    await reached(counterparties, second, "counterparties.customer")
    assert await bank.pool.fetchval("SELECT count(*) FROM counterparty") == TWICE


async def test_more_accounts_than_a_limit_lets_link_are_not_asked_for(bank, places):
    with_limits(bank, {"account_links.customer": 1})
    (desk, pocket), *_ = places
    path, body = linked_accounts(desk, pocket)[1:3]
    both = body | {"accounts": [{"id": "checking"}, {"id": "savings"}]}
    await desk.refused("POST", path, both, status=429, code=LIMIT)
    assert await bank.pool.fetchval("SELECT count(*) FROM counterparty") == 0
    await desk.post(path, body)


async def test_a_customer_submits_so_many_applications_a_day_and_another_goes_on(bank, customer_desk, other_customer):
    with_limits(bank, {"application_checks.customer": 1})
    for desk in (customer_desk, other_customer):
        applicant = Applicant(desk, V2)
        first, second = await applicant.simple(), await applicant.simple()
        await applicant.apply(first)
        path = applicant.path(second, "apply")
        problem = await desk.refused("POST", path, {}, status=429, code=LIMIT)
        assert problem["limit"] == "application_checks.customer"
        assert (await applicant.get(second))["status"] == "CREATED"


async def test_a_partner_submits_so_many_applications_a_day_and_another_goes_on(bank, partner_desks):
    with_limits(bank, {"application_checks.partner": 1, "application_checks.customer": 0})
    for slug in ("acme", "globex"):
        applicant = Applicant(await partner_desks(slug), V1)
        first, second = await applicant.simple(), await applicant.simple()
        await applicant.apply(first)
        path = applicant.path(second, "apply")
        problem = await applicant.desk.refused("POST", path, {}, status=429, code=LIMIT)
        assert problem["limit"] == "application_checks.partner"
