"""Every entry that is held for a person has an exit: it is returned, also by hand, assigned, or a debit written off."""

import pytest
from tests.support.raw_ach import OURS, entry, header, international, returned

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.payments.suspense.decisions import propose_assignment, propose_return, propose_write_off
from billfold.platform.errors import InvalidInput, Refused

OLGA, OTTO = (Operator.of_command_line(name) for name in ("olga", "otto"))
UNKNOWN_ACCOUNT, UNKNOWN_ENTRY = "999999999999", "061199990009999"


async def hold_lines(sender, *lines, head=None):
    """Receive lines that are held; return the id of the item."""
    await sender.arrive(*lines, head=head)
    return await sender.bank.pool.fetchval("SELECT item_id FROM suspense_item WHERE status = 'HELD'")


async def decide(sender, proposing):
    """Confirm what an operator has proposed, as another; return the status of what was held."""
    await confirm(sender.bank, (await proposing).proposal_id, by=OTTO)
    await sender.days()
    return [status for _, _, status, _ in await sender.suspense()]


async def balance(sender, kind):
    return await sender.bank.pool.fetchval(
        """SELECT coalesce(sum(CASE WHEN p.credit = a.account_no THEN p.amount ELSE -p.amount END), 0)::bigint
             FROM posting p JOIN account a ON a.customer_id = p.customer_id AND a.account_no IN (p.debit, p.credit)
            WHERE a.kind = $1""",
        kind,
    )


async def test_an_iat_debit_is_written_off_by_two_operators(sender):
    item_id = await hold_lines(
        sender, *international(543_21, 1, sender.anna.account, code="27"), head=header("IAT", 1, name="")
    )
    numbers = {"routing_number": OURS, "account_number": sender.anna.account}
    with pytest.raises(Refused, match="Return it, or write it off") as refused:
        await propose_assignment(sender.bank, item_id, **numbers, by=OLGA)
    assert refused.value.code == "suspense-item-stays"
    proposal = await propose_write_off(sender.bank, item_id, reason="Nobody takes it back", by=OLGA)
    with pytest.raises(Refused, match="another operator"):
        await confirm(sender.bank, proposal.proposal_id, by=OLGA)
    assert await balance(sender, "losses") == 0
    await confirm(sender.bank, proposal.proposal_id, by=OTTO)
    assert (await balance(sender, "losses"), await balance(sender, "suspense")) == (-543_21, 0)
    assert [status for _, _, status, _ in await sender.suspense()] == ["WRITTEN_OFF"]
    await sender.days()


@pytest.mark.parametrize("code", ["22", "27"])
async def test_an_iat_entry_returned_by_hand_leaves_suspense_without_a_return_entry(sender, code):
    item_id = await hold_lines(
        sender, *international(543_21, 1, sender.anna.account, code=code), head=header("IAT", 1, name="")
    )
    with pytest.raises(Refused, match="suspense return --by-hand"):
        await propose_return(sender.bank, item_id, reason="R03", by=OLGA)
    by_hand = propose_return(sender.bank, item_id, reason="Returned as IAT, R03", by_hand=True, by=OLGA)
    assert await decide(sender, by_hand) == ["RETURNED"]
    reason = await sender.bank.pool.fetchval("SELECT return_reason FROM suspense_item")
    assert (reason, await balance(sender, "suspense")) == ("Returned as IAT, R03", 0)
    assert [each for each in await sender.sent_entries() if each.amount == 543_21] == []


async def test_a_held_debit_is_returned_with_the_code_chosen_by_operators(sender):
    item_id = await hold_lines(sender, entry("27", UNKNOWN_ACCOUNT, 7_31, 1))
    with pytest.raises(Refused, match="without --by-hand") as refused:
        await propose_return(sender.bank, item_id, reason="by hand", by_hand=True, by=OLGA)
    assert refused.value.code == "suspense-item-returnable"
    with pytest.raises(InvalidInput, match="R01, R02"):
        await propose_return(sender.bank, item_id, reason="R99", by=OLGA)
    assert await decide(sender, propose_return(sender.bank, item_id, reason="R10", by=OLGA)) == ["RETURNED"]
    assert [code for code, cents, _ in await sender.sent() if cents == 7_31] == ["R10"]


async def test_an_unmatched_return_can_be_sent_back_only_with_a_dishonored_return_code(sender):
    item_id = await hold_lines(sender, entry("26", "12", 7_31, 1, addenda="1"), returned("R01", UNKNOWN_ENTRY, 1))
    with pytest.raises(InvalidInput, match="must be R6"):
        await propose_return(sender.bank, item_id, reason="R10", by=OLGA)
    assert await decide(sender, propose_return(sender.bank, item_id, reason="NO_ACCOUNT", by=OLGA)) == ["RETURNED"]


async def test_writing_off_a_held_credit_is_refused(sender):
    item_id = await hold_lines(sender, *international(543_21, 1, sender.anna.account), head=header("IAT", 1, name=""))
    with pytest.raises(Refused, match="somebody's money") as refused:
        await propose_write_off(sender.bank, item_id, reason="Nobody asks for it", by=OLGA)
    assert refused.value.code == "suspense-item-stays"
