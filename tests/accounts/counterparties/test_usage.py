"""Daily limits of micro-deposits sent to one account and of attempts to verify their amounts, over all customers."""

import asyncio
from collections import Counter

import pytest
from tests.support.payees import ach
from tests.support.whole_bank import with_limits

PATH = "/api/v2/counterparties/"
DEPOSITS = {"type": "micro_deposits"}
LIMIT = "usage-limit-reached"


def account(number="000123456789", **fields):
    return ach(account_number=number, verification=DEPOSITS, **fields)


def confirm(counterparty):
    return f"{PATH}{counterparty['id']}/verify-micro-deposits/"


async def guess(desk, counterparty, *amounts):
    answer = await desk.send("POST", confirm(counterparty), {"amounts": list(amounts)})
    return answer.json().get("code", answer.status_code)


async def sent(bank):
    """Return how many micro-deposits have been sent."""
    return await bank.pool.fetchval("SELECT count(*) FROM ach_entry WHERE description = 'ACCTVERIFY'")


async def test_confirmations_before_the_deposits_are_sent_do_not_count_as_failures(customer_desk, world):
    await customer_desk.pocket()
    made = await customer_desk.post(PATH, account())
    for amounts in ((11, 22), (1, 2)):
        assert await guess(customer_desk, made, *amounts) == "micro-deposits-not-sent"
    assert (await customer_desk.get(f"{PATH}{made['id']}/"))["verification"]["verification_failure_count"] == 0
    await world.days(2)
    assert await guess(customer_desk, made, 22, 11) == 200


async def test_three_wrong_confirmations_lock_the_account_number_for_all_customers(
    customer_desk, other_customer, world
):
    for desk in (customer_desk, other_customer):
        await desk.pocket()
    mine = [await customer_desk.post(PATH, account(number)) for number in ("000123456789", "123456789")]
    theirs = await other_customer.post(PATH, account("0123456789"))
    another = await customer_desk.post(PATH, account("99123456789"))
    await world.days(2)
    tried = [await guess(customer_desk, each, 1, 2) for each in (*mine, mine[0])]
    assert tried == ["micro-deposits-mismatch"] * 3
    for desk, each in ((customer_desk, mine[1]), (other_customer, theirs)):
        problem = await desk.refused("POST", confirm(each), {"amounts": [11, 22]}, status=429, code=LIMIT)
        assert problem["limit"] == "verification_tries.account"
        assert 6 * 86_400 < problem["retry_after_seconds"] <= 7 * 86_400 + 1
    await other_customer.refused("POST", PATH, account("00000123456789"), status=429, code=LIMIT)
    await world.days(20)  # the bank's clock is not the one that counts
    assert await guess(other_customer, theirs, 11, 22) == LIMIT
    assert await guess(customer_desk, another, 11, 22) == 200


async def test_a_locked_account_reports_retry_after_and_further_tries_do_not_extend_it(bank, customer_desk, world):
    await customer_desk.pocket()
    made = [await customer_desk.post(PATH, account()) for _ in range(2)]
    await world.days(2)
    for each in (made[0], made[0], made[1]):
        assert await guess(customer_desk, each, 1, 2) == "micro-deposits-mismatch"
    await bank.pool.execute("UPDATE usage_count SET expires_at = expires_at - interval '5 days'")
    for _ in range(2):
        problem = await customer_desk.refused("POST", confirm(made[1]), {"amounts": [1, 2]}, status=429, code=LIMIT)
        assert 86_400 < problem["retry_after_seconds"] <= 2 * 86_400 + 1


async def test_a_correct_last_try_unlocks_the_account(customer_desk, world):
    await customer_desk.pocket()
    first, second = [await customer_desk.post(PATH, account()) for _ in range(2)]
    await world.days(2)
    for _ in range(2):
        assert await guess(customer_desk, first, 1, 2) == "micro-deposits-mismatch"
    assert await guess(customer_desk, first, 11, 22) == 200
    assert await guess(customer_desk, second, 1, 2) == "micro-deposits-mismatch"
    assert await guess(customer_desk, second, 11, 22) == 200


async def test_concurrent_guesses_do_not_exceed_the_limit_of_tries(customer_desk, world):
    await customer_desk.pocket()
    made = [await customer_desk.post(PATH, account()) for _ in range(3)]
    await world.days(2)
    answers = await asyncio.gather(*(guess(customer_desk, made[n % 3], 1, 2 + n) for n in range(15)))
    assert Counter(answers) == {"micro-deposits-mismatch": 3, LIMIT: 12}


async def test_an_account_gets_micro_deposits_at_most_three_times_across_customers_and_partners(
    bank, customer_desk, other_customer, world, partner_desks
):
    for desk in (customer_desk, other_customer):
        await desk.pocket()
    numbers = [f"{'0' * zeros}123456789" for zeros in range(8)]
    answers = await asyncio.gather(
        *(desk.send("POST", PATH, account(number)) for desk in (customer_desk, other_customer) for number in numbers)
    )
    assert Counter(each.status_code for each in answers) == {201: 3, 429: 13}
    await world.days(2)
    assert await sent(bank) == 6
    stranger = await partner_desks("other")
    pocket = await stranger.pocket()
    by_wire = f"/api/v2/customers/{pocket.customer}/counterparties/"
    assert (await stranger.post(by_wire, ach()))["status"] == "PENDING"  # no deposit is sent for it


@pytest.mark.parametrize("whose", ["customer", "partner"])
async def test_daily_micro_deposit_limits_apply_per_customer_and_per_partner(
    bank, customer_desk, other_customer, whose
):
    with_limits(bank, {f"micro_deposits.{whose}": 2})
    for desk in (customer_desk, other_customer):
        await desk.pocket()
    for nth in range(2):
        await customer_desk.post(PATH, account(f"4711{nth:06}"))
    problem = await customer_desk.refused("POST", PATH, account("4711999999"), status=429, code=LIMIT)
    assert problem["limit"] == f"micro_deposits.{whose}"
    other = await other_customer.send("POST", PATH, account("4711888888"))
    assert other.status_code == (201 if whose == "customer" else 429)


async def test_adding_counterparties_over_the_daily_limit_is_refused(bank, customer_desk):
    await customer_desk.pocket()
    with_limits(bank, {"counterparties.customer": 2})
    for _ in range(2):
        await customer_desk.post(PATH, ach())
    answer = await customer_desk.ask("POST", PATH, ach(), status=429)
    assert 0 < int(answer.headers["retry-after"]) <= 86_400


@pytest.mark.parametrize("whose", ["customer", "partner"])
async def test_daily_verification_tries_are_limited_per_customer_and_per_partner(
    bank, customer_desk, other_customer, world, whose
):
    with_limits(bank, {f"verification_tries.{whose}": 2})
    made = {}
    for nth, desk in enumerate((customer_desk, other_customer)):
        await desk.pocket()
        made[desk] = [await desk.post(PATH, account(f"47{nth}{each}000000")) for each in range(3)]
    await world.days(2)
    first, second, third = made[customer_desk]
    for each in (first, second):
        assert await guess(customer_desk, each, 1, 2) == "micro-deposits-mismatch"
    problem = await customer_desk.refused("POST", confirm(third), {"amounts": [11, 22]}, status=429, code=LIMIT)
    assert problem["limit"] == f"verification_tries.{whose}"
    assert await guess(other_customer, made[other_customer][0], 11, 22) == (200 if whose == "customer" else LIMIT)
