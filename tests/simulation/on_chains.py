"""Chains in a simulated history: deposits that are questioned or reorged, withdrawals that succeed or fail."""

from typing import Any

from msgspec.structs import replace
from tests.simulation.operating import new_id, of_a_pocket

from billfold.accounts.portals.commands import OpenPortal, Wallet
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Direction, Rail
from billfold.payments.crypto.chains import WatchOnlyAddresses, cents_of, units_of
from billfold.payments.crypto.deposits.rules import (
    UNAVAILABLE,
    ChainDeposit,
    CreditDeposit,
    DepositStatus,
    HoldReason,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
    details_of,
)
from billfold.payments.crypto.withdrawals.rules import CompleteWithdrawal, RejectWithdrawal, SendUsdc, SubmitWithdrawal
from billfold.payments.suspense.rules import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense, SuspenseStatus
from billfold.sandbox.chain.faucet import CHAIN_NAME, DEPOSIT_XPUB, TEST_DOLLAR

PATH = "0"
ADDRESSES = WatchOnlyAddresses(DEPOSIT_XPUB, PATH)
WALLETS = 30
PAYEE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
DECIMALS = 6
OFF_CHAIN = (SubmitWithdrawal, CompleteWithdrawal, RejectWithdrawal)


def learn(life, step, outcome):
    """Remember results for later steps."""
    if isinstance(step, CreditDeposit | RecordUnbooked) and outcome["status"] != UNAVAILABLE:
        life.arrived.append((step.customers[0], step.deposit_id))
    elif isinstance(step, SendUsdc):
        life.usdc.append((step.customers[0], step.withdrawal_id))


def wallet_of(index):
    """Return an address of the sandbox's key."""
    return Wallet(chain=CHAIN_NAME, address=ADDRESSES.derive(index), asset="USDC", xpub_id=1, index=index)


@of_a_pocket
def wallet(life, place):
    if len(life.wallets) > WALLETS:
        return None
    fields = {"pocket_id": place.id, "name": "On chain", "wallet": wallet_of(life.count)}
    return life.submit(OpenPortal, place.customer, **fields)


def transfer_on_chain(number, recipient, units):
    """Return a final transfer to an address; its other fields follow from the number."""
    return ChainDeposit(
        chain=CHAIN_NAME,
        tx_hash=f"0x{number:064x}",
        log_index=0,
        block_number=number,
        block_hash=f"0x{number:064x}",
        token=TEST_DOLLAR,
        asset="USDC",
        decimals=DECIMALS,
        minimum_cents=100,
        sender=PAYEE,
        recipient=recipient,
        units=str(units),
    )


def deposit(life):
    """A deposit arrives; some are questionable, and some must not be credited."""
    if life.following:
        return _next(life)
    if not life.wallets:
        return None
    place, address = life.random.choice(life.wallets)
    deposit_id = new_id(life, "deposit")
    units = life.random.choice((life.random.randint(1, 2_000_000), units_of(life._cents(), DECIMALS) + 6_666))
    fields: dict[str, Any] = {
        "references": (deposit_id, place.portal),
        "deposit_id": deposit_id,
        "portal_id": place.portal,
        "pocket_id": place.id,
        "deposit": transfer_on_chain(life.count, address, units),
    }
    cents, luck = cents_of(units, DECIMALS).cents, life.random.random()
    if luck < 0.15:
        return life.submit(RecordUnbooked, place.customer, **fields, amount=0, reason=HoldReason.BALANCE_DIFFERS)
    if luck < 0.3 and cents:
        held = {"amount": cents, "reason": HoldReason.SENDER_LISTED}
        life.following.append((RecordUnbooked, (place.customer,), fields | held))
        return _hold(life, deposit_id, fields["deposit"], deposit_id=deposit_id, **held)
    return life.submit(CreditDeposit, place.customer, **fields)


def _hold(life, item_id, deposit, *, deposit_id, **fields):
    return life.submit(
        HoldInSuspense,
        bank_customer_id(life.bank.seed),
        item_id=item_id,
        rail=Rail.CRYPTO,
        direction=Direction.CREDIT,
        details={"description": "USDC", "details": details_of(deposit_id, deposit)},
        **fields,
    )


def _next(life):
    kind, customers, fields = life.following.pop(0)
    return life.submit(kind, *customers, **fields)


def deposit_goes_on(life):
    """Decide on a deposit, replace its block or restore it; some of these twice."""
    if life.following or not life.arrived:
        return _next(life) if life.following else None
    customer, deposit_id = life.random.choice(life.arrived)
    row = life.bank.seen.of(customer)[deposit_id]
    both = {"references": (deposit_id,), "deposit_id": deposit_id}
    customers = (customer, bank_customer_id(life.bank.seed))
    if row.status == DepositStatus.HELD:
        return _held_goes_on(life, row, customers, both)
    if row.status == DepositStatus.REORGED:
        return _comes_back(life, row, customers, both)
    if row.status == DepositStatus.QUESTIONED or life.random.random() < 0.3:
        columns = {name: getattr(row, name) for name in ChainDeposit.__struct_fields__ if name != "minimum_cents"}
        deposit = ChainDeposit(**columns, minimum_cents=1)
        place = {"portal_id": row.portal_id, "pocket_id": row.pocket_id, "is_released": life.random.random() < 0.8}
        fields = {"references": (deposit_id, row.portal_id), "deposit_id": deposit_id, "deposit": deposit}
        return life.submit(CreditDeposit, customer, **fields, **place)
    return life.submit(WriteOffDeposit, *customers, **both)


def _comes_back(life, row, customers, both):
    block = {"block_number": life.count, "block_hash": f"0x{life.count:064x}"}
    restored = both | block | {"log_index": 0}
    if row.reason != DepositStatus.HELD:
        return life.submit(RestoreDeposit, *customers, **restored)
    life.following.append((RestoreDeposit, customers, restored))
    back = replace(row, reason=HoldReason.REORGED, **block)
    held = {"deposit_id": row.deposit_id, "amount": row.amount, "reason": HoldReason.REORGED}
    return _hold(life, back.item_id, back, **held)


def _held_goes_on(life, row, customers, both):
    item, house = life.bank.seen.of(customers[1])[row.item_id], customers[1]
    of_item = {"item_id": row.item_id, "references": (row.item_id,)}
    write_off = {**both, "is_released": item.status == SuspenseStatus.ASSIGNED}
    if item.status != SuspenseStatus.HELD:
        return life.submit(WriteOffDeposit, *customers, **write_off)
    own = [place for place, _ in life.wallets if place.customer == customers[0]]
    if life.random.random() < 0.5:
        there = life.random.choice(own)
        places = {"portal_id": there.portal, "pocket_id": there.id}
        return life.submit(AssignFromSuspense, house, customers[0], **of_item, **places)
    life.following.append((WriteOffDeposit, customers, write_off))
    return life.submit(ReturnFromSuspense, house, **of_item, reason="REORGED")


@of_a_pocket
def usdc(life, place):
    known = life.bank.books[place.customer].counterparties.values()
    payee = next((each.counterparty_id for each in known if each.type == "crypto_wallet_address"), None)
    if payee is None:
        details = {"chain": CHAIN_NAME, "wallet_address": PAYEE, "asset": "USDC"}
        fields = {"details": details, "verification": "linking_provider"}
        return life.add_counterparty(place.customer, "crypto_wallet_address", **fields)
    return life.submit(
        SendUsdc,
        place.customer,
        withdrawal_id=new_id(life, "usdc"),
        pocket_id=place.id,
        amount=life._payable(place),
        counterparty_id=payee,
        approved=life.random.random() < 0.5,
        references=(payee,),
    )


def usdc_goes_on(life):
    """Send, confirm or fail a withdrawal; not always in order, nor once."""
    if not life.usdc:
        return None
    customer, withdrawal_id = life.random.choice(life.usdc)
    kind = life.random.choice(OFF_CHAIN)
    return life.submit(kind, customer, **of_withdrawal(kind, withdrawal_id))


def of_withdrawal(kind, withdrawal_id):
    """Return the fields that a chain reports about a withdrawal."""
    fields = {"withdrawal_id": withdrawal_id, "references": (withdrawal_id,)}
    if kind is not SubmitWithdrawal:
        fields["transaction_hash"] = f"0x{withdrawal_id.int:064x}"
    return fields | ({"reason": "INVALID_TRANSFER"} if kind is RejectWithdrawal else {})


ON_CHAINS = {
    "wallet": wallet,
    "deposit_on_chain": deposit,
    "deposit_goes_on": deposit_goes_on,
    "usdc": usdc,
    "usdc_goes_on": usdc_goes_on,
}
