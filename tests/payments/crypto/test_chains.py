"""Chains: their configuration, addresses and amounts, and what their nodes answer."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
import pytest
from bip32 import BIP32
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures.chain import chain_of, serving_local_chain

from billfold.payments.crypto.chains import (
    ChainMistakes,
    ExtendedPublicKey,
    WatchOnlyAddresses,
    cents_of,
    checked_chains,
    read_address,
    read_chains,
    units_of,
)
from billfold.payments.crypto.nodes import EvmNode, NodeUnavailable
from billfold.sandbox.chain.faucet import DEPOSIT_XPUB, LOG_TRANSFER, TEST_DOLLAR, Faucet, call_data
from billfold.sandbox.chain.launch import local_chain_file, local_node_urls

# BIP-44 of the mnemonic "test test test test test test test test test test test junk", account 0.
_ADDRESSES = (
    "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
)
_XPRV = (
    "xprv9yeny6n2dNUokQFykGoZU6BDLeKbEBUoBeCFe2VF6MXdrHrprMYRc4tddncDRxrJCy7GtPDk68zRcgWtGFveqdCV5NyhZwVgMoZVbTm78vx"
)


def test_deposit_addresses_are_derived_from_the_public_key():
    derived = [WatchOnlyAddresses(DEPOSIT_XPUB, "0").derive(index) for index in range(3)]

    assert tuple(derived) == _ADDRESSES
    assert not {*derived} & {WatchOnlyAddresses(DEPOSIT_XPUB, "1").derive(index) for index in range(3)}


@settings(max_examples=20)
@given(st.binary(min_size=16, max_size=64), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_derived_public_keys_match_those_of_a_second_library(seed, step, index):
    theirs = BIP32.from_seed(seed)
    ours = ExtendedPublicKey.read(theirs.get_xpub()).child(step).child(index)
    assert ours.key.format() == theirs.get_pubkey_from_path([step, index])


@pytest.mark.parametrize("xpub", [DEPOSIT_XPUB[:-1], DEPOSIT_XPUB + "1", "xpub0" + DEPOSIT_XPUB[5:]])
def test_a_damaged_extended_public_key_is_refused(xpub):
    with pytest.raises(ValueError, match="extended public key"):
        WatchOnlyAddresses(xpub, "0")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (_ADDRESSES[0], _ADDRESSES[0]),
        (_ADDRESSES[0].lower(), _ADDRESSES[0]),
        ("0x" + _ADDRESSES[0][2:].upper(), _ADDRESSES[0]),
        (_ADDRESSES[0].replace("F", "f", 1), None),  # one letter's case
        (_ADDRESSES[0][:-1], None),
        (_ADDRESSES[0][2:], None),
        (_ADDRESSES[0] + "\n", None),
        ("0X" + _ADDRESSES[0][2:], None),
    ],
)
def test_an_evm_address_with_a_wrong_checksum_is_not_read(text, address):
    assert read_address(text) == address


@given(st.integers(0, 10**30), st.integers(2, 36))
def test_converting_token_units_to_cents_loses_no_units(units, decimals):
    cents, remainder = cents_of(units, decimals)

    assert units_of(cents, decimals) + remainder == units
    assert cents_of(remainder, decimals).cents == 0


def test_every_error_in_the_chains_file_is_reported(tmp_path):
    file = tmp_path / "chains.toml"
    file.write_text(local_chain_file(8545))
    (chain,) = read_chains(file).values()
    token = chain.tokens[0]
    swap = msgspec.structs.replace
    wrong = swap(
        chain,
        rpc_urls=("https://node/key", "https://node/key", "ftp://node"),
        tokens=(token, swap(token, asset="USDT"), swap(token, address=_ADDRESSES[0].replace("F", "f", 1))),
        xpub=_XPRV,
    )

    with pytest.raises(ChainMistakes) as refused:
        checked_chains([chain, wrong])

    assert [mistake.split(": ", 1)[1].split(" ")[:3] for mistake in refused.value.mistakes] == [
        ["rpc_urls", "3", "is"],
        ["rpc_urls", "has", "a"],
        ["the", "address", "of"],
        ["tokens", "has", "an"],
        ["xpub", "is", "not"],
        ["name", "is", "there"],
        ["chain_id", "is", "there"],
    ]
    assert "key" not in str(refused.value).replace("public key", "")
    for text in (local_chain_file(1).replace("decimals = 6", "decimals = 1"), "[[chain]]\nnaem = 1", "not toml"):
        file.write_text(text)
        with pytest.raises(ChainMistakes, match=r"chains\.toml"):
            read_chains(file)


async def test_a_node_reports_transfers_blocks_and_balances_and_reverts_them_after_a_reorg(chain_and_faucet):
    chain, faucet = chain_and_faucet
    mine, other = _ADDRESSES[:2]
    async with aclosing(EvmNode(chain, chain.rpc_urls[0])) as node:
        await node.check_chain()
        start = (await node.head()).number
        minted = await faucet.mint(TEST_DOLLAR, mine, 12_345_678)
        await faucet.mint(TEST_DOLLAR, other, 1)
        await faucet.send(TEST_DOLLAR, call_data(LOG_TRANSFER, other, mine, 5_000_000))
        head = await node.head()

        found, lie = await node.list_transfers(start + 1, head.number, [mine], None)
        assert (found.tx_hash, found.token, found.recipient, found.units) == (minted, TEST_DOLLAR, mine, 12_345_678)
        assert (lie.sender, lie.units) == (other, 5_000_000)
        # The log that lies moved nothing.
        assert await node.balance(TEST_DOLLAR, mine, head.number) == 12_345_678
        assert await node.balance(TEST_DOLLAR, mine, start) == 0
        assert (await node.finalized()).number == head.number - 2
        assert await node.find_block(head.number + 1) is None
        block = await node.find_block(found.block_number)
        assert block is not None
        assert block.hash == found.block_hash

        await faucet.reorganize(3)
        assert await node.list_transfers(start + 1, head.number, [mine, other], None) == []
        replaced = await node.find_block(found.block_number)
        assert replaced is not None
        assert replaced.parent_hash == block.parent_hash
        assert replaced.hash != block.hash


async def test_an_invalid_node_response_raises_node_unavailable(chain_and_faucet):
    chain, _ = chain_and_faucet
    url = chain.rpc_urls[0]
    closed = chain_of("http://127.0.0.1:9/")
    for wrong in (msgspec.structs.replace(chain, chain_id=1), closed):
        async with aclosing(EvmNode(wrong, wrong.rpc_urls[0])) as node:
            with pytest.raises(NodeUnavailable):
                await node.check_chain()
    async with aclosing(EvmNode(chain, url)) as node:
        with pytest.raises(NodeUnavailable, match="eth_call"):
            await node.balance(_ADDRESSES[0], _ADDRESSES[1], 1)  # an address that is no contract
        assert await node.balance(TEST_DOLLAR, _ADDRESSES[0], 999) is None  # a block that it does not have


async def test_a_restarted_local_chain_keeps_its_state(tmp_path):
    with serving_local_chain(tmp_path) as port:
        url, _ = local_node_urls(port)
        async with aclosing(Faucet(url)) as faucet:
            await faucet.mint(TEST_DOLLAR, _ADDRESSES[0], 7)
            await faucet.reorganize(1)
            await faucet.mint(TEST_DOLLAR, _ADDRESSES[0], 8)
        async with aclosing(EvmNode(chain_of(url), url)) as node:
            before = await node.head(), await node.list_transfers(0, 9, [_ADDRESSES[0]], None)
    with serving_local_chain(tmp_path) as port:
        url, _ = local_node_urls(port)
        async with aclosing(EvmNode(chain_of(url), url)) as node:
            assert (await node.head(), await node.list_transfers(0, 9, [_ADDRESSES[0]], None)) == before
    assert [each.units for each in before[1]] == [8]
