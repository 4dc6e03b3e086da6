"""Sweeps and look-alike transfers at deposit addresses: no deposit is missed, and none is invented."""

from contextlib import aclosing

import pytest
from eth_account import Account
from tests.fixtures.deposits import DOLLAR
from tests.support.whole_bank import expect_clean

from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.nodes import EvmNode
from billfold.sandbox.chain.faucet import LOG_TRANSFER, TEST_DOLLAR, TRANSFER, Faucet, address_of, call_data

_MNEMONIC = "test test test test test test test test test test test junk"
TREASURY = address_of(b"9" * 32)


class Custodian:
    """Holds the keys of deposit addresses, and puts its own and others' transfers into one block."""

    def __init__(self, depositor, faucet):
        self.depositor, self.faucet = depositor, faucet

    async def key(self, portal):
        Account.enable_unaudited_hdwallet_features()
        index = await self.depositor.bank.pool.fetchval(
            "SELECT address_index FROM portal WHERE wallet_address = $1", portal["wallet_address"]
        )
        found = Account.from_mnemonic(_MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")
        assert found.address == portal["wallet_address"]
        await self.faucet.give_ether(found.address, 10**18)
        return bytes(found.key)

    async def in_one_block(self, *sending):
        """Send each in this order, and mine until it is final and read."""
        await self.faucet.rpc.call("evm_setAutomine", False)
        for each in sending:
            await each
        await self.faucet.rpc.call("evm_setAutomine", True)
        await self.depositor.mine(3)
        await self.depositor.watch(2)


@pytest.fixture
async def custodian(depositor):
    async with aclosing(Faucet(depositor.urls[0])) as faucet:
        yield Custodian(depositor, faucet)


@pytest.mark.parametrize("swept", [100, 140, 40])
async def test_a_crypto_deposit_is_credited_when_its_address_is_swept_in_the_same_block(custodian, swept):
    depositor, faucet = custodian.depositor, custodian.faucet
    portal = await depositor.portal()
    key = await custodian.key(portal)
    await depositor.deposited(portal, 100)
    await custodian.in_one_block(
        faucet.mint(TEST_DOLLAR, portal["wallet_address"], 40 * DOLLAR),
        faucet.transfer(TEST_DOLLAR, TREASURY, swept * DOLLAR, key=key),
    )
    assert await depositor.statuses() == [("CREDITED", 100_00, None), ("CREDITED", 40_00, None)]
    assert await depositor.credits() == [100_00, 40_00]
    await expect_clean(depositor.bank)


async def test_a_false_transfer_log_is_questioned_when_its_address_is_swept_in_the_same_block(custodian):
    depositor, faucet = custodian.depositor, custodian.faucet
    portal = await depositor.portal()
    key = await custodian.key(portal)
    await depositor.deposited(portal, 100)
    await custodian.in_one_block(
        faucet.send(TEST_DOLLAR, call_data(LOG_TRANSFER, TREASURY, portal["wallet_address"], 40 * DOLLAR)),
        faucet.transfer(TEST_DOLLAR, TREASURY, 100 * DOLLAR, key=key),
    )
    assert (await depositor.statuses())[1:] == [("QUESTIONED", 0, "BALANCE_DIFFERS")]
    assert await depositor.credits() == [100_00]


async def test_a_self_transfer_is_not_a_deposit_and_a_real_one_in_its_block_is_credited(custodian):
    depositor, faucet = custodian.depositor, custodian.faucet
    portal = await depositor.portal()
    address, key = portal["wallet_address"], await custodian.key(portal)
    await depositor.deposited(portal, 100)
    await custodian.in_one_block(faucet.transfer(TEST_DOLLAR, address, 100 * DOLLAR, key=key))
    await custodian.in_one_block(
        faucet.transfer(TEST_DOLLAR, address, 100 * DOLLAR, key=key),
        faucet.mint(TEST_DOLLAR, address, 7 * DOLLAR),
        faucet.transfer(TEST_DOLLAR, TREASURY, 100 * DOLLAR, key=key),
    )
    assert await depositor.statuses() == [("CREDITED", 100_00, None), ("CREDITED", 7_00, None)]
    assert await depositor.seen() == [("FINAL", 7 * DOLLAR), ("FINAL", 100 * DOLLAR)]
    await expect_clean(depositor.bank)


async def test_tokens_from_a_second_deposit_address_are_questioned_and_not_credited_again(custodian):
    depositor, faucet = custodian.depositor, custodian.faucet
    portal, other = await depositor.portal(), await depositor.portal()
    key = await custodian.key(portal)
    await depositor.deposited(portal, 100)
    await custodian.in_one_block(faucet.transfer(TEST_DOLLAR, other["wallet_address"], 60 * DOLLAR, key=key))
    assert await depositor.statuses() == [("CREDITED", 100_00, None), ("QUESTIONED", 0, "OWN_ADDRESS")]
    assert await depositor.credits() == [100_00]
    assert await depositor.balance("suspense") == 0
    await expect_clean(depositor.bank)


async def test_a_node_reports_the_units_sent_from_an_address_in_a_block(custodian):
    depositor, faucet = custodian.depositor, custodian.faucet
    portal = await depositor.portal()
    address, key = portal["wallet_address"], await custodian.key(portal)
    await faucet.mint(TEST_DOLLAR, address, 9)
    await faucet.send(TEST_DOLLAR, call_data(TRANSFER, TREASURY, 4), key=key)
    (chain,) = depositor.bank.ports[Chains].values()
    async with aclosing(EvmNode(chain, depositor.urls[0])) as node:
        head = (await node.head()).number
        assert await node.units_sent(TEST_DOLLAR, address, head) == 4
        assert await node.units_sent(TEST_DOLLAR, address, head - 1) == 0
