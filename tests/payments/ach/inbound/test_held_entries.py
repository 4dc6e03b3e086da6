"""Every entry that is held for a person has an exit: it is returned, also by hand, assigned, or a debit written off."""

import pytest
from tests.payments.ach.inbound.sender import Sender
from tests.support.raw_ach import OURS, entry, header, international, returned

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.payments.suspense.decisions import propose_assignment, propose_return, propose_write_off
from billfold.platform.errors import InvalidInput, Refused

OLGA, OTTO = (Operator.of_command_line(name) for name in ("olga", "otto"))
UNKNOWN_ACCOUNT, UNKNOWN_ENTRY = "999999999999", "061199990009999"


@pytest.fixture
async def room(bank):
    sender = Sender(bank)
    await sender.send()
    return sender


async def held(room, *lines, head=None):
    """Let lines arrive that are held; return the id of the item."""
    await room.arrive(*lines, head=head)
    return await room.bank.pool.fetchval("SELECT item_id FROM suspense_item WHERE status = 'HELD'")


async def decide(room, proposing):
    """Confirm what an operator has proposed, as another; return the status of what was held."""
    await confirm(room.bank, (await proposing).proposal_id, by=OTTO)
    await room.days()
    return [status for _, _, status, _ in await room.suspense()]


async def balance(room, kind):
    return await room.bank.pool.fetchval(
        """SELECT coalesce(sum(CASE WHEN p.credit = a.account_no THEN p.amount ELSE -p.amount END), 0)::bigint
             FROM posting p JOIN account a ON a.customer_id = p.customer_id AND a.account_no IN (p.debit, p.credit)
            WHERE a.kind = $1""",
        kind,
    )


async def test_an_international_debit_is_written_off_by_two_operators(room):
    item_id = await held(room, *international(543_21, 1, room.anna.account, code="27"), head=header("IAT", 1, name=""))
    numbers = {"routing_number": OURS, "account_number": room.anna.account}
    with pytest.raises(Refused, match="Return it, or write it off") as refused:
        await propose_assignment(room.bank, item_id, **numbers, by=OLGA)
    assert refused.value.code == "suspense-item-stays"
    proposal = await propose_write_off(room.bank, item_id, reason="Nobody takes it back", by=OLGA)
    with pytest.raises(Refused, match="another operator"):
        await confirm(room.bank, proposal.proposal_id, by=OLGA)
    assert await balance(room, "losses") == 0
    await confirm(room.bank, proposal.proposal_id, by=OTTO)
    assert (await balance(room, "losses"), await balance(room, "suspense")) == (-543_21, 0)
    assert [status for _, _, status, _ in await room.suspense()] == ["WRITTEN_OFF"]
    await room.days()


@pytest.mark.parametrize("code", ["22", "27"])
async def test_an_international_entry_that_people_have_returned_leaves_suspense_and_sends_nothing(room, code):
    item_id = await held(room, *international(543_21, 1, room.anna.account, code=code), head=header("IAT", 1, name=""))
    with pytest.raises(Refused, match="suspense return --by-hand"):
        await propose_return(room.bank, item_id, reason="R03", by=OLGA)
    by_hand = propose_return(room.bank, item_id, reason="Returned as IAT, R03", by_hand=True, by=OLGA)
    assert await decide(room, by_hand) == ["RETURNED"]
    reason = await room.bank.pool.fetchval("SELECT return_reason FROM suspense_item")
    assert (reason, await balance(room, "suspense")) == ("Returned as IAT, R03", 0)
    assert [each for each in await room.sent_entries() if each.amount == 543_21] == []


async def test_a_held_debit_is_returned_under_the_code_that_operators_name(room):
    item_id = await held(room, entry("27", UNKNOWN_ACCOUNT, 7_31, 1))
    with pytest.raises(Refused, match="without --by-hand") as refused:
        await propose_return(room.bank, item_id, reason="by hand", by_hand=True, by=OLGA)
    assert refused.value.code == "suspense-item-returnable"
    with pytest.raises(InvalidInput, match="R01, R02"):
        await propose_return(room.bank, item_id, reason="R99", by=OLGA)
    assert await decide(room, propose_return(room.bank, item_id, reason="R10", by=OLGA)) == ["RETURNED"]
    assert [code for code, cents, _ in await room.sent() if cents == 7_31] == ["R10"]


async def test_a_return_that_fits_no_payment_goes_back_under_the_code_of_a_dishonored_return_alone(room):
    item_id = await held(room, entry("26", "12", 7_31, 1, addenda="1"), returned("R01", UNKNOWN_ENTRY, 1))
    with pytest.raises(InvalidInput, match="must be R6"):
        await propose_return(room.bank, item_id, reason="R10", by=OLGA)
    assert await decide(room, propose_return(room.bank, item_id, reason="NO_ACCOUNT", by=OLGA)) == ["RETURNED"]


async def test_a_held_credit_is_somebody_s_money_and_is_not_written_off(room):
    item_id = await held(room, *international(543_21, 1, room.anna.account), head=header("IAT", 1, name=""))
    with pytest.raises(Refused, match="somebody's money") as refused:
        await propose_write_off(room.bank, item_id, reason="Nobody asks for it", by=OLGA)
    assert refused.value.code == "suspense-item-stays"
