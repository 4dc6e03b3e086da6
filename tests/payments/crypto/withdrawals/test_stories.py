"""USDC is requested, approved, signed, sent and final; or it is not, and the money comes back once."""

from uuid import UUID

import msgspec
from tests.approvals.test_execute_transfers import not_executed, schedule_execution
from tests.fixtures.withdrawals import PAYEE
from tests.support.approvals import decide
from tests.support.payees import wallet as wallet_form
from tests.support.whole_bank import EngineCommands

from billfold.accounts.counterparties.commands import SettleScreening
from billfold.accounts.counterparties.types import SanctionsStatus
from billfold.payments.crypto import cli
from billfold.payments.crypto.chains import units_of
from billfold.payments.crypto.withdrawals import nonces
from billfold.payments.crypto.withdrawals import wallet as withdrawal_wallet
from billfold.payments.crypto.withdrawals.signing import Signer
from billfold.sandbox.chain.faucet import FAUCET_KEY, PAUSE, TEST_DOLLAR, call_data

ELSEWHERE = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
LISTED = "0x5abc000000000000000000000000000000000bad"


async def signatures(usdc, request_id):
    sql = "SELECT * FROM crypto_signature WHERE withdrawal_id = $1 ORDER BY attempt"
    return await usdc.bank.pool.fetch(sql, request_id)


async def test_a_crypto_withdrawal_is_paid_on_chain_and_shown_in_every_view(usdc):
    request_id = await usdc.send(1_234_56)
    await usdc.work()
    assert await usdc.status(request_id) == ("PROCESSING", None)
    await usdc.mine(3)
    assert await usdc.status(request_id) == ("COMPLETED", None)
    assert (await usdc.paid(), await usdc.moved()) == (1_234_56, -1_234_56)
    assert await usdc.events() == ["processing", "success"]
    shown = (await usdc.desk.get(f"/api/v1/transfer-requests/{request_id}/"))["transfer"]
    (transaction,) = shown["transaction_ids"]
    booked = await usdc.desk.get(f"/api/v2/transactions/{transaction}/")
    assert (booked["type"], booked["title"]) == ("GENERIC", "USDC sent")
    await cli.show(usdc.bank, request_id)
    ((chain, _, nonce, fees, problem, *_),) = await cli.wallets(usdc.bank)
    assert (chain, nonce, problem) == ("ETHEREUM", 1, None)
    assert int(str(fees)) > 0


async def test_a_stuck_crypto_withdrawal_is_replaced_and_survives_a_reorg(usdc):
    await usdc.mine_nothing()
    request_id = await usdc.send(2_000_00)
    later = await usdc.send(500_00)
    await usdc.work()
    assert await usdc.state(request_id) == await usdc.state(later) == "SUBMITTED"
    for _ in range(2):
        await usdc.bank.pool.execute("UPDATE crypto_signature SET sent_at = sent_at - interval '1 hour'")
        await usdc.work()
    first, second, third = await signatures(usdc, request_id)
    assert 8 * second["max_fee"] >= 9 * first["max_fee"]
    assert 8 * third["priority_fee"] >= 9 * second["priority_fee"]
    assert len(await signatures(usdc, later)) == 1  # it waits behind the first whatever it pays

    await usdc.mine()
    assert await usdc.state(request_id) == "MINED"
    await usdc.faucet.rpc.call("anvil_reorg", 1, [])  # the pool has lost it
    await usdc.work()
    assert await usdc.state(request_id) == "SUBMITTED"
    assert await usdc.status(request_id) == ("PROCESSING", None)
    await usdc.mine(4)
    assert [await usdc.status(each) for each in (request_id, later)] == [("COMPLETED", None)] * 2
    kept = "SELECT transaction_hash FROM crypto_withdrawal WHERE withdrawal_id = $1"
    assert await usdc.bank.pool.fetchval(kept, request_id) == third["transaction_hash"]
    assert await usdc.paid() == 2_500_00


async def test_a_failed_withdrawal_is_reported_without_blocking_others(usdc, monkeypatch):
    failing, other = [await usdc.send(1_00, await usdc.wallet(address)) for address in (ELSEWHERE, PAYEE)]
    found = withdrawal_wallet.find_objection

    async def fail(bank, conn, chain, address):
        if address == ELSEWHERE:
            raise ValueError("nobody foresaw this")
        return await found(bank, conn, chain, address)

    monkeypatch.setattr(nonces, "find_objection", fail)
    await usdc.work()
    await usdc.mine(3)
    assert [await usdc.status(each) for each in (failing, other)] == [("PROCESSING", None), ("COMPLETED", None)]
    ((*_, problem, _, detail),) = await cli.wallets(usdc.bank)
    assert problem == "UNEXPLAINED"
    assert str(failing) in str(detail)
    assert "nobody foresaw this" in str(detail)
    monkeypatch.undo()
    await usdc.work()
    await usdc.mine(3)
    assert (await usdc.status(failing), await usdc.problem()) == (("COMPLETED", None), None)


async def test_a_reverted_withdrawal_is_refunded_once(usdc):
    await usdc.mine_nothing()
    request_id = await usdc.send(3_000_00)
    await usdc.work()
    assert await usdc.moved() == -3_000_00
    await usdc.faucet.send(TEST_DOLLAR, call_data(PAUSE, 1), key=FAUCET_KEY)
    await usdc.faucet.rpc.call("anvil_mine", "0x1")
    await usdc.mine(3)
    for _ in range(2):
        await usdc.work()
        assert await usdc.status(request_id) == ("REJECTED", "INVALID_TRANSFER")
    assert (await usdc.paid(), await usdc.moved()) == (0, 0)
    assert await usdc.events() == ["processing", "rejected"]

    # While the token is paused nothing is signed at all.
    refused = await usdc.send(1_00)
    await usdc.work()
    assert (await usdc.status(refused), await usdc.state(refused)) == (("REJECTED", "INVALID_TRANSFER"), "REFUSED")


async def test_an_operator_cancels_unmined_withdrawals(usdc):
    await usdc.mine_nothing()
    sent, unsent = await usdc.send(100_00), await usdc.send(200_00)
    # Nothing was done for the second: the first is reserved, signed and sent.
    await usdc.bank.pool.execute("UPDATE crypto_withdrawal SET chain = 'BASE' WHERE withdrawal_id = $1", unsent)
    await usdc.work()
    await usdc.bank.pool.execute("UPDATE crypto_withdrawal SET chain = 'ETHEREUM' WHERE withdrawal_id = $1", unsent)
    await cli.cancel(usdc.bank, unsent)
    await cli.cancel(usdc.bank, sent)
    await usdc.work()
    await usdc.mine(3)
    assert [await usdc.status(each) for each in (sent, unsent)] == [("REJECTED", "CANCELED")] * 2
    assert [row["intent"] for row in await signatures(usdc, sent)] == ["PAY", "CANCEL"]
    assert (await usdc.paid(), await usdc.moved()) == (0, 0)


async def test_a_blocked_wallet_is_reported_and_resumes_when_fixed(usdc, bank):
    address = await bank.ports[Signer].address()
    request_id = await usdc.send(100_00)
    key = (bank.settings.state_dir / "crypto_signer" / "wallet.key").read_bytes()
    await usdc.faucet.transfer(TEST_DOLLAR, PAYEE, units_of(1_000_000_00, 6), key=key)
    await usdc.work()
    assert (await usdc.state(request_id), await usdc.problem()) == (None, "TOKENS_SHORT")
    await usdc.faucet.mint(TEST_DOLLAR, address, units_of(500_00, 6))
    await usdc.work()
    await usdc.mine(3)
    assert (await usdc.status(request_id), await usdc.problem()) == (("COMPLETED", None), None)

    await usdc.faucet.transfer(TEST_DOLLAR, PAYEE, 1, key=key)
    later = await usdc.send(50_00)
    await usdc.work()
    assert (await usdc.state(later), await usdc.problem()) == (None, "USED_ELSEWHERE")
    await cli.accept_nonces(bank, "ETHEREUM", 3)
    await usdc.work()
    await usdc.mine(3)
    assert (await usdc.status(later), await usdc.problem()) == (("COMPLETED", None), None)


async def test_a_withdrawal_to_a_forbidden_address_is_refused_before_money_moves(usdc, bank):
    wallet = await bank.ports[Signer].address()
    first = await usdc.send(1_00)
    await usdc.work()  # from now on the bank knows its own wallet
    for address, chain, code in (
        (wallet, "ETHEREUM", "wallet-not-payable"),
        (wallet.lower(), "ETHEREUM", "wallet-not-payable"),
        (TEST_DOLLAR, "ETHEREUM", "wallet-not-payable"),
        (LISTED, "ETHEREUM", "sanction-screen-failed"),
        (PAYEE, "BASE", "rail-not-available"),
    ):
        status = 409 if code == "sanction-screen-failed" else 422
        refused = await usdc.request(5_00, await usdc.wallet(address, chain), status=status)
        assert refused["code"] == code, address
    for nowhere in (TEST_DOLLAR, wallet, "0x" + 40 * "0"):
        body = wallet_form(chain="ETHEREUM", wallet_address=nowhere)
        await usdc.desk.invalid("POST", "/api/v2/counterparties/", body, loc="body.wallet_address")
    for cents in (1, 99):
        refused = await usdc.request(cents, status=422)
        assert (refused["code"], refused["minimum_usdc"]) == ("amount-below-minimum", 1_00)
    too_much = await usdc.request(9_000_000_00)
    answer = await decide(usdc.manager, too_much, answers=422)
    assert answer["code"] == "insufficient-funds"
    assert await usdc.moved() == -1_00
    assert await usdc.status(first) == ("PROCESSING", None)


async def test_withdrawals_below_a_raised_minimum_are_not_executed(usdc, bank):
    waiting, approved, enough = [await usdc.request(cents) for cents in (5_00, 9_99, 10_00)]
    with not_executed(bank):
        await decide(usdc.manager, approved)
    bank.terms = bank.engine.terms = msgspec.structs.replace(bank.terms, usdc_minimum_cents=10_00)
    answer = await decide(usdc.manager, waiting, answers=422)
    assert (answer["code"], answer["minimum_usdc"]) == ("amount-below-minimum", 10_00)
    await schedule_execution(usdc.desk, approved)
    await usdc.desk.later(minutes=1)
    assert await usdc.status(approved["id"]) == ("REJECTED", "INVALID_TRANSFER")
    await decide(usdc.manager, enough)
    assert await usdc.status(enough["id"]) == ("PROCESSING", None)
    assert await usdc.moved() == -10_00


async def test_a_withdrawal_screened_or_frozen_before_its_nonce_is_not_paid(usdc, bank):
    payee = UUID(await usdc.wallet())
    listed = await usdc.send(20_00, str(payee))
    commands = EngineCommands(bank)
    await commands.submit(SettleScreening, usdc.customer, counterparty_id=payee, sanctions=SanctionsStatus.OPEN)
    await usdc.work()
    assert await usdc.status(listed) == ("REJECTED", "SANCTION_SCREEN_FAILED")
    frozen = await usdc.send(10_00)
    standing = "UPDATE customer SET account_status = $2 WHERE customer_id = $1"
    await bank.pool.execute(standing, usdc.customer, "FROZEN")
    await usdc.work()
    await bank.pool.execute(standing, usdc.customer, "OPEN")
    assert await usdc.status(frozen) == ("REJECTED", "ACCOUNT_UNAVAILABLE")
    assert (await usdc.moved(), await bank.pool.fetchval("SELECT count(*) FROM crypto_signature")) == (0, 0)


async def test_a_lying_or_lagging_node_neither_completes_nor_refunds_a_withdrawal(usdc):
    await usdc.mine_nothing()
    request_id = await usdc.send(700_00)
    await usdc.work()
    for fault in ("DOWN", "LIE", "LAG"):
        await usdc.fault(2, fault)
        await usdc.mine(1 if fault == "LAG" else 2)
        assert await usdc.status(request_id) == ("PROCESSING", None), fault
    await usdc.fault(2, None)
    await usdc.work()
    assert await usdc.status(request_id) == ("COMPLETED", None)
    assert (await usdc.paid(), await usdc.moved()) == (700_00, -700_00)


async def test_a_withdrawal_whose_nonce_was_spent_elsewhere_is_refunded_when_final(usdc, bank):
    await usdc.mine_nothing()
    request_id = await usdc.send(300_00)
    await usdc.work()
    # A thief of the key pays themselves under the same nonce, for more gas.
    key = (bank.settings.state_dir / "crypto_signer" / "wallet.key").read_bytes()
    await usdc.steal_nonce(ELSEWHERE, key)
    await usdc.mine(2)
    assert await usdc.status(request_id) == ("PROCESSING", None)
    await usdc.mine(1)
    assert await usdc.status(request_id) == ("REJECTED", "INVALID_TRANSFER")
    assert (await usdc.state(request_id), await usdc.moved()) == ("DISPLACED", 0)
