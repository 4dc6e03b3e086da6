"""The sandbox's statements come from what its rails moved, and disagree only where they were told to."""

import pytest
from tests.reconciliation.books import MONDAY, TUESDAY, WEDNESDAY, Mornings
from tests.reconciliation.files import RESERVE, SAFE
from tests.trading.fix.simulated_desk import simulated_desk

from billfold.reconciliation.worker import reconcile
from billfold.sandbox.dealers.launch import DEALER_FOLDER
from billfold.sandbox.rails.fedwire import DestinationAccount, Sender, SimulatedFedwire
from billfold.sandbox.rails.statements import SimulatedStatements, StatementBehavior


@pytest.fixture
async def bank(bank_dsn, tmp_path):
    own = {"state_dir": tmp_path, "reserve_account": RESERVE, "custodian_account": SAFE}
    async with simulated_desk(bank_dsn, tmp_path / DEALER_FOLDER, **own) as desk, desk.routing():
        await desk.is_on(MONDAY)
        yield desk.bank


@pytest.fixture
async def wired(bank, new_holder):
    """A customer who receives wires by the simulated Fedwire, and the two of Monday."""
    anna = await new_holder()
    account = await bank.pool.fetchval("SELECT account_number FROM portal WHERE portal_id = $1", anna.portal_id)

    async def pay(name, cents):
        to = DestinationAccount(bank.settings.bank_routing_number, account)
        await SimulatedFedwire().pay(bank, name, to, cents, Sender("Payer"))

    await pay("one", 700_00)
    await pay("two", 1_000_00)
    return pay


async def test_days_of_the_sandbox_match_to_the_last_line(bank, wired):
    morning = Mornings(bank, is_simulated=True)
    await morning.close(TUESDAY)
    assert await reconcile(bank) == 5, "two days of two accounts, and a dealer's recap"
    assert await morning.breaks() == []
    days = await bank.pool.fetch("SELECT source, day, lines, matched FROM reconciled_day ORDER BY source, day")
    assert [tuple(each) for each in days if each["source"] == "RESERVE"] == [
        ("RESERVE", MONDAY, 2, 2),
        ("RESERVE", TUESDAY, days[-1]["lines"], days[-1]["lines"]),
    ]
    assert days[-1]["lines"] > 0, "the bills were paid"


@pytest.mark.parametrize(
    ("behavior", "found"),
    [
        (StatementBehavior.UNKNOWN_LINE, [("UNKNOWN_LINE", 123_45, None)]),
        (StatementBehavior.MISSING_LINE, [("MISSING_LINE", None, 700_00)]),
        (StatementBehavior.CENT_OFF, [("DIFFERENT_AMOUNT", 700_01, 700_00)]),
    ],
)
async def test_a_chosen_behavior_makes_one_statement_wrong(bank, wired, behavior, found):
    morning = Mornings(bank, is_simulated=True)
    await SimulatedStatements().choose(bank, behavior)
    await morning.close(MONDAY)
    await reconcile(bank)
    assert await morning.breaks() == found
    await morning.close(TUESDAY)
    await reconcile(bank)
    assert await morning.breaks() == found, "only one statement was wrong"


async def test_holdings_short_of_a_bill_and_a_statement_that_never_came_are_breaks(bank, wired):
    morning = Mornings(bank, is_simulated=True)
    await morning.close(MONDAY)
    await SimulatedStatements().choose(bank, StatementBehavior.HOLDINGS_SHORT)
    await morning.close(TUESDAY)
    await reconcile(bank)
    [(cause, stated, booked)] = await morning.breaks()
    assert (cause, booked - stated) == ("DIFFERENT_UNITS", 1)
    await SimulatedStatements().choose(bank, StatementBehavior.NO_STATEMENT)
    await morning.close(WEDNESDAY)
    await morning.look(after=WEDNESDAY)
    assert sorted(cause for cause, _, _ in await morning.breaks()) == [
        "DIFFERENT_UNITS", "NO_STATEMENT", "NO_STATEMENT"
    ]  # fmt: skip
