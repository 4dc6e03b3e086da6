"""Deposits on a real chain: credited when final and agreed about, held when in doubt, taken back when reorged."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from eth_hash.auto import keccak
from tests.fixtures.deposits import DOLLAR, SANDBOX
from tests.support.applications import LIST, import_list, run_jobs
from tests.support.approvals import confirm_as_otto
from tests.support.databases import owner_of
from tests.support.whole_bank import expect_clean

from billfold.accounts.portals.commands import WalletSource
from billfold.cli.context import CliError
from billfold.payments.crypto import cli
from billfold.payments.crypto.chains import Chains
from billfold.payments.crypto.deposits import store
from billfold.payments.crypto.deposits.watcher import ChainWatcher, ChainWatchers
from billfold.payments.suspense import cli as suspense_cli
from billfold.platform.errors import Refused
from billfold.sandbox.chain.faucet import CHAIN_NAME, TEST_DOLLAR, Faucet, address_of
from billfold.verify.runner import verify_bank


async def test_a_crypto_deposit_is_credited_when_final_and_fractions_of_cents_are_carried(depositor):
    desk, portal = depositor.desk, await depositor.portal()
    path = f"{depositor.pocket.path}portals/"
    assert (portal["type"], portal["chain"], portal["asset"]) == (
        *("CRYPTO_DEPOSIT_ADDRESS_PORTAL", CHAIN_NAME, "USDC"),
    )
    assert (portal["status"], portal["payment_rails"], "routing_number" in portal) == ("OPEN", ["CRYPTO"], False)
    assert (await desk.get(path, {"type[]": ["CRYPTO_DEPOSIT_ADDRESS_PORTAL"]}))["items"] == [portal]
    (told,) = (await desk.get(f"{path}{portal['id']}/funding-instructions/"))["instructions"]
    assert told == {
        "payment_rail": "CRYPTO",
        "chain": CHAIN_NAME,
        "wallet_address": portal["wallet_address"],
        "asset": "USDC",
        "minimum_amount": {"value": 100, "currency": "USD", "formatted": "$1.00"},
    }

    await depositor.send(portal, 250.006)
    await depositor.watch()
    assert await depositor.seen() == [("PENDING", 250_006_000)]
    assert await depositor.credits() == []
    await depositor.mine()
    await depositor.watch(2)
    assert await depositor.credits() == [250_00]
    # Of the second deposit 0.4 cents make a cent with the 0.6 that were carried.
    await depositor.deposited(portal, 99.994)
    assert await depositor.credits() == [250_00, 100_00]
    # Below the minimum nothing is booked yet, and nothing is lost.
    await depositor.deposited(portal, 0.6)
    assert (await depositor.statuses())[-1] == ("CARRIED", 0, None)
    await depositor.deposited(portal, 0.5)
    assert await depositor.credits() == [250_00, 100_00, 1_10]
    assert {each["type"] for each in (await desk.get(f"{depositor.pocket.path}transactions/"))["items"]} == {"GENERIC"}
    kinds = "SELECT count(*) FROM event WHERE kind = 'transfers.crypto.deposit.success'"
    assert await depositor.bank.pool.fetchval(kinds) == 3
    assert await depositor.balance("rail:crypto") == -351_10


async def test_a_reorged_deposit_that_reappears_is_credited_once(depositor):
    portal = await depositor.portal()
    await depositor.send(portal, 500)
    await depositor.watch()
    await depositor.reorganize(1, keep=True)
    await depositor.watch()
    assert await depositor.seen() == [("REORGED", 500 * DOLLAR)]
    await depositor.mine(3)
    depositor.restart()
    await depositor.watch(3)
    assert await depositor.seen() == [("FINAL", 500 * DOLLAR)]
    assert await depositor.credits() == [500_00]


async def test_a_reorg_after_credit_is_booked_as_a_loss_until_the_deposit_reappears(depositor):
    portal = await depositor.portal()
    await depositor.deposited(portal, 40)
    await depositor.deposited(portal, 7)
    await depositor.reorganize(4, keep=True)
    await depositor.watch()
    assert [each[0] for each in await depositor.statuses()] == ["CREDITED", "REORGED"]
    assert await depositor.balance("losses") == -7_00
    assert await depositor.credits() == [40_00, 7_00]
    assert await depositor.balance("rail:crypto") == -40_00
    await depositor.mine(3)
    await depositor.watch(2)
    assert [each[0] for each in await depositor.statuses()] == ["CREDITED", "CREDITED"]
    assert await depositor.balance("losses") == 0
    assert await depositor.credits() == [40_00, 7_00]


async def test_a_reorged_held_deposit_leaves_suspense_and_is_assigned_when_it_reappears(depositor):
    bank, portal, other = depositor.bank, await depositor.portal(), await depositor.portal()
    await depositor.desk.post(f"/api/v1/service-accounts/{depositor.pocket.id}/portals/{portal['id']}/close/", {}, 204)
    await depositor.mine(6)
    await depositor.deposited(portal, 60)
    for _ in range(2):
        await depositor.reorganize(4, keep=True)
        await depositor.watch()
        assert await depositor.balance("suspense") == 0
        await depositor.mine(3)
        await depositor.watch(2)
        assert await depositor.statuses() == [("HELD", 60_00, "REORGED")]
        assert await depositor.balance("suspense") == 60_00
    (held,) = await store.list_deposits(bank.pool)
    await confirm_as_otto(bank, await cli.assign(bank, held.deposit_id, other["wallet_address"]))
    assert await depositor.credits() == [60_00]
    event = "SELECT payload->>'crypto_transfer_id' FROM event WHERE kind = 'transfers.crypto.deposit.success'"
    assert await bank.pool.fetchval(event) == str(held.deposit_id)
    assert (await depositor.balance("suspense"), await depositor.balance("losses")) == (0, 0)
    await expect_clean(bank)


async def test_a_deposit_is_credited_only_when_both_nodes_agree_and_node_faults_are_reported(depositor):
    portal = await depositor.portal()
    hosts = {url.split("/")[2] for url in depositor.urls}
    await depositor.mine(20)
    for nth, (fault, said) in enumerate(
        (("DOWN", "status 503"), ("LIE", "another chain"), ("LAG", "blocks behind")), 1
    ):
        await depositor.fault(2, fault)
        await depositor.deposited(portal, 10)
        await depositor.watch()
        assert len(await depositor.credits()) == nth - 1, fault
        assert any(said in each for each in (await depositor.problems()).values()), (fault, await depositor.problems())
        assert set(await depositor.problems()) <= hosts
        await depositor.fault(2, None)
        depositor.restart()
        await depositor.watch()
        assert len(await depositor.credits()) == nth
        assert await depositor.problems() == {}


async def test_suspicious_deposits_are_held_and_released_by_an_operator(depositor, tmp_path):
    bank, portal, other = depositor.bank, await depositor.portal(), await depositor.portal()
    listed = address_of(keccak(b"A listed sender"))
    await import_list(bank, tmp_path, LIST.replace("0x5abc000000000000000000000000000000000bad", listed.lower()))
    await depositor.deposited(portal, 30, sender_name="A listed sender")
    await depositor.deposited(portal, 20, kind="FALSE_LOG")
    await depositor.deposited(portal, 1, kind="OTHER_TOKEN")
    path = f"{depositor.pocket.path}portals/{portal['id']}/"
    account = f"/api/v1/service-accounts/{depositor.pocket.id}/portals/{portal['id']}/close/"
    await depositor.desk.post(account, {}, 204)
    assert (await depositor.desk.get(path))["status"] == "CLOSED"
    await depositor.deposited(portal, 60)

    assert await depositor.statuses() == [
        ("HELD", 30_00, "SENDER_LISTED"),
        ("QUESTIONED", 0, "BALANCE_DIFFERS"),
        ("HELD", 60_00, "PORTAL_CLOSED"),
    ]
    assert ("WRONG_TOKEN", DOLLAR) in await depositor.seen()
    assert await depositor.credits() == []
    assert await depositor.balance("suspense") == 90_00
    await _release(depositor, portal, other)


async def _release(depositor, portal, other):
    bank = depositor.bank
    held, questioned, listed = [each.deposit_id for each in await store.list_deposits(bank.pool)]
    stranger = await depositor.portal(await depositor.desk.pocket())
    with pytest.raises(CliError, match="No portal of the deposit's customer"):
        await cli.assign(bank, held, stranger["wallet_address"])
    with pytest.raises(Refused, match="closed"):
        await cli.assign(bank, held, portal["wallet_address"])
    await confirm_as_otto(bank, await cli.assign(bank, held, other["wallet_address"].lower()))
    with pytest.raises(Refused, match="HELD already"):
        await cli.release(bank, held)
    await confirm_as_otto(bank, await suspense_cli.return_to_sender(bank, listed))
    await run_jobs(bank)
    assert await depositor.credits() == [60_00]
    assert await depositor.balance("suspense") == 0
    # The log that lied: an operator who has seen the tokens credits it, and the closed portal takes nothing.
    with pytest.raises(CliError, match="UNAVAILABLE"):
        await cli.release(bank, questioned)
    assert await depositor.credits() == [60_00]


async def test_invalid_deposit_address_requests_are_refused_and_address_indexes_stay_unique(depositor, partner_desks):
    desk, path = depositor.desk, f"{depositor.pocket.path}portals/"
    body = {"type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "name": "x"}
    for changes, loc in (
        ({}, "body.chain"),
        ({"chain": "ethereum"}, "body.chain"),
        ({"chain": CHAIN_NAME, "payment_rails": ["CRYPTO", "ACH"]}, "body.payment_rails"),
        ({"type": "BANK_VIRTUAL_ACCOUNT_PORTAL", "payment_rails": ["CRYPTO"]}, "body.payment_rails"),
        ({"chain": CHAIN_NAME, "type": "BANK_VIRTUAL_ACCOUNT_PORTAL"}, "body.chain"),
    ):
        await desk.invalid("POST", path, body | changes, loc=loc)
    first = await depositor.portal(payment_rails=["CRYPTO"])
    repeated = [
        await desk.post(path, body | {"chain": CHAIN_NAME}, key="9b6f2f3e-8a52-4b0e-9d57-0d3c2a1b4c5d")
        for _ in range(2)
    ]
    assert repeated[0] == repeated[1]
    stranger = await partner_desks("hooli")
    await stranger.ask("GET", f"{path}{first['id']}/", status=404)
    await stranger.ask("POST", f"{SANDBOX}/deposit/", {"portal_id": first["id"], "units": 1}, status=404)
    addresses = await depositor.bank.pool.fetch("SELECT wallet_address FROM portal WHERE address_index IS NOT NULL")
    assert len({each[0] for each in addresses}) == len(addresses) == 2
    bank_portal = {"portal_id": depositor.pocket.portal, "units": 1}
    await desk.invalid("POST", f"{SANDBOX}/deposit/", bank_portal, loc="body.portal_id")
    depositor.bank.ports[WalletSource] = None
    await desk.refused("POST", path, body | {"chain": CHAIN_NAME}, status=422, code="rail-not-available")


async def test_verify_reports_a_damaged_deposit_log_or_address_row(depositor):
    bank, portal = depositor.bank, await depositor.portal()
    await depositor.deposited(portal, 12.5)
    for table, change in (
        ("crypto_deposit", "UPDATE crypto_deposit SET units = '1'"),
        ("crypto_deposit", "UPDATE crypto_deposit SET amount = amount + 1"),
        ("crypto_deposit", "DELETE FROM crypto_deposit"),
        ("crypto_deposit", "UPDATE chain_transfer SET units = '1'"),
        ("chain_transfer", "UPDATE chain_transfer SET log_index = 9"),
        ("portal", "UPDATE portal SET address_index = 77 WHERE address_index IS NOT NULL"),
        ("portal", "UPDATE portal SET wallet_address = '0x' WHERE address_index IS NOT NULL"),
    ):
        async with owner_of(bank) as conn:
            transaction = conn.transaction()
            await transaction.start()
            await conn.execute(change)
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
        assert table in {finding.table for finding in report.findings}, (change, report.findings)


async def test_an_unreachable_chain_does_not_block_others_and_concurrent_addresses_are_unique(depositor):
    bank = depositor.bank
    (chain,) = bank.ports[Chains].values()
    away = msgspec.structs.replace(chain, name="BASE", chain_id=8453, rpc_urls=("http://127.0.0.1:9/",))
    bank.ports[Chains] = Chains({"BASE": away, chain.name: chain})
    wallets = await asyncio.gather(*(bank.ports[WalletSource].allot(chain.name) for _ in range(20)))
    assert len({wallet.address for wallet in wallets}) == 20
    async with owner_of(bank) as conn:
        await conn.execute("DELETE FROM chain_cursor")
    await depositor.portal(status=503)  # who knows where the next round begins
    await depositor.watch()
    portal = await depositor.portal()
    await depositor.send(portal, 77)
    await depositor.mine()
    async with aclosing(ChainWatchers(poll_seconds=0)) as watchers:
        for _ in range(2):
            await watchers(bank)
    assert await depositor.credits() == [77_00]


async def test_nodes_lagging_behind_the_booked_block_reverse_nothing(depositor):
    bank, portal = depositor.bank, await depositor.portal()
    await depositor.mine(20)
    await depositor.deposited(portal, 10)
    for fault in ("LAG", None):
        for node in (1, 2):
            await depositor.fault(node, fault)
            await depositor.watch()
        await depositor.mine()
        await depositor.watch(2)
        assert await depositor.seen() == [("FINAL", 10 * DOLLAR)], fault
    assert await depositor.credits() == [10_00]
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=bank.vault)
    assert not report.findings


async def test_a_deposit_booked_before_it_was_shown_as_pending_stays_final(depositor, monkeypatch):
    portal = await depositor.portal()
    with monkeypatch.context() as patched:

        async def fail(watcher, cursor, agreed):
            return cursor

        patched.setattr(ChainWatcher, "_preview", fail)
        await depositor.deposited(portal, 10)
    await depositor.mine()
    await depositor.watch(2)
    assert await depositor.seen() == [("FINAL", 10 * DOLLAR)]
    await expect_clean(depositor.bank)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_deposit_booked_by_an_interrupted_round_follows_its_block(depositor, monkeypatch, is_kept):
    portal = await depositor.portal()
    await depositor.mine(6)
    await depositor.watch()
    await depositor.mine(6)
    with monkeypatch.context() as patched:

        async def fail(pool, cursor):
            raise OSError("the process ends")

        patched.setattr(store, "save_cursor", fail)
        with pytest.raises(OSError, match="ends"):
            await depositor.deposited(portal, 10)
    assert await depositor.credits() == [10_00]
    await depositor.reorganize(4, keep=is_kept)
    await depositor.mine(3)
    await depositor.watch(2)
    assert await depositor.credits() == [10_00]
    assert await depositor.balance("losses") == (0 if is_kept else -10_00)
    assert [each[0] for each in await depositor.statuses()] == ["CREDITED" if is_kept else "REORGED"]
    await expect_clean(depositor.bank)


async def test_an_oversized_deposit_amount_does_not_block_other_deposits(depositor):
    portal = await depositor.portal()
    async with aclosing(Faucet(depositor.urls[0])) as faucet:
        await faucet.mint(TEST_DOLLAR, portal["wallet_address"], 10**30)
    await depositor.deposited(portal, 5)
    assert await depositor.statuses() == [("QUESTIONED", 0, "AMOUNT_TOO_LARGE"), ("CREDITED", 5_00, None)]
