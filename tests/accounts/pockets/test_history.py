"""The state of a Pocket at any past instant equals the state recorded then."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from tests.support.cases import in_one_bank
from tests.support.whole_bank import PARTNER

from billfold.accounts.pockets import store
from billfold.accounts.pockets.commands import OpenPocket
from billfold.accounts.pockets.store import Boundary
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")

NONE = UUID(int=0)


class Diary:
    """Records the live state of Pockets over time."""

    def __init__(self, bank, keys):
        self.bank, self.keys = bank, keys
        self.clock = ClockStepper(bank)
        self.seen = []

    async def note(self, until=None):
        """Advance the clock, then record the states just after that instant."""
        if until is not None:
            await self.clock.set_to(datetime.fromisoformat(until))
        now = await self.bank.now()
        for key in self.keys:
            row = await store.get_pocket(self.bank.pool, *key)
            self.seen.append((key, now, store.current_pocket_state(row)))
        # Nothing else happens at this instant.
        await self.clock.advance(timedelta(seconds=1))

    def boundary(self, key: tuple[UUID, UUID], at):
        return Boundary(*key, self.bank.calendars.business_date(at), at)


async def transfer(bank, holder, other, cents, **fields):
    command = TransferOnUs(
        caller="test",
        key=ids.new(),
        customers=(holder.customer_id, other[0]),
        transfer_id=None,
        type="INTERNAL_REALLOCATION",
        from_pocket_id=holder.pocket_id,
        to_pocket_id=other[1],
        amount=cents,
        partner_id=PARTNER,
        **fields,
    )
    return (await bank.engine.submit(command)).outcome


async def second_pocket(bank, holder):
    command = OpenPocket(
        caller="test",
        key=ids.new(),
        customers=(holder.customer_id,),
        partner_id=PARTNER,
        name="Second",
        deposit_weeks=13,
        reinvestment_weeks=None,
    )
    outcome = (await bank.engine.submit(command)).outcome
    return holder.customer_id, UUID(outcome["pocket_id"])


@pytest.fixture
async def diary(bank, new_holder):
    """Ten weeks of two Pockets: flows, sales, bills in kind, a fee, maturities, quiet nights."""
    holder, stranger = await new_holder(), await new_holder()
    other = await second_pocket(bank, holder)
    written = Diary(bank, [(holder.customer_id, holder.pocket_id), other])
    await written.note()
    await holder.deposit(300_000_37)
    await written.note("2025-06-02T10:00:00-04:00")
    await transfer(bank, holder, other, cents=50_000_00)
    await transfer(bank, holder, (stranger.customer_id, stranger.pocket_id), cents=1_234_56)
    await written.note("2025-06-02T16:59:00-04:00")
    await holder.deposit(9_999_99, rail="ACH")
    await written.note("2025-06-02T21:00:00-04:00")
    await written.note("2025-06-03T09:00:00-04:00")
    await transfer(bank, holder, other, cents=20_000_00, order=IN_KIND)
    await written.note("2025-06-06T18:00:00-04:00")
    await holder.deposit(5_000_00)
    await written.note("2025-06-07T12:00:00-04:00")
    await written.note("2025-06-09T12:00:00-04:00")
    await written.note("2025-07-03T12:00:00-04:00")
    await transfer(bank, holder, other, cents=None)
    await written.note("2025-07-10T12:00:00-04:00")
    await written.note("2025-08-12T12:00:00-04:00")
    return written


def plain(state):
    """Return a state with sorted positions."""
    return (frozenset(state.positions), *(getattr(state, name) for name in COUNTERS))


COUNTERS = ("cash", "earnings_basis", "inflow", "outflow", "fees", "realised")


async def pocket_states_at_past_instants_equal_the_live_states(diary):
    # Just after the instant, since what happened at it belongs to what follows it.
    asked = [diary.boundary(key, at + timedelta(microseconds=1)) for key, at, _ in diary.seen]
    found = await store.pocket_states_before(diary.bank.pool, asked)
    assert [plain(each) for each in found] == [plain(each) for _, _, each in diary.seen]
    assert len({plain(each) for each in found}) > 10
    assert any(each.fees for each in found)
    assert any(each.realised for each in found)


async def cash_and_basis_equal_net_inflow_at_every_instant(diary):
    for _, _, state in diary.seen:
        came = state.inflow - state.outflow - state.fees + state.realised
        assert state.cash + state.earnings_basis == came


async def pocket_states_are_returned_in_request_order_and_equal_single_queries(diary):
    asked = [diary.boundary(key, at) for key, at, _ in reversed(diary.seen)]
    together = await store.pocket_states_before(diary.bank.pool, asked)
    alone = [(await store.pocket_states_before(diary.bank.pool, [boundary]))[0] for boundary in asked]
    assert together == alone


async def an_unknown_or_unopened_pocket_has_an_empty_state(diary):
    begin = datetime.fromisoformat("2024-01-01T00:00:00-05:00")
    boundaries = [diary.boundary((NONE, NONE), begin), diary.boundary(diary.keys[0], begin)]
    found = await store.pocket_states_before(diary.bank.pool, boundaries)
    assert [plain(each) for each in found] == [(frozenset(), 0, 0, 0, 0, 0, 0)] * 2
    assert await store.pocket_states_before(diary.bank.pool, []) == []


@in_one_bank(
    "check",
    [
        pocket_states_at_past_instants_equal_the_live_states,
        cash_and_basis_equal_net_inflow_at_every_instant,
        pocket_states_are_returned_in_request_order_and_equal_single_queries,
        an_unknown_or_unopened_pocket_has_an_empty_state,
    ],
)
async def test_the_states_of_ten_weeks_are_those_recorded_then(diary, check):
    await check(diary)
