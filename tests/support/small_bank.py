"""A small bank with a bit of everything in its log, always the same: what proofs are tried on."""

from datetime import date, timedelta
from uuid import UUID

import msgspec
from tests.support.whole_bank import PARTNER, SEED, close_bank, open_bank

from billfold.accounts.commands import (
    CloseCustomer,
    EnrolCustomer,
    OpenPocket,
    OpenPortal,
    SetPocketState,
    UpdateCustomer,
    UpdatePocket,
    UpdatePortal,
)
from billfold.accounts.counterparties.commands import AddCounterparty, UpdateCounterparty
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.payments.adjustments.commands import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.custody.commands import DeliverBills, EndDelivery, ReceiveBills
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.on_us.types import TransferOrder
from billfold.payments.suspense.commands import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.platform.dates import et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive
from billfold.sandbox.clock.stepper import ClockStepper

CALLER = "small bank"
IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")
RENT, AT_NIGHT = TransferOrder(description="rent"), TransferOrder(description="at night")


class Town:
    """Says what happens in the small bank; every key comes from a counter."""

    def __init__(self, bank):
        self.bank = bank
        self.count = 0
        self.clock = ClockStepper(bank)

    async def do(self, kind, customers, **fields):
        """Carry out a command of this kind; return its outcome, or the refusal."""
        self.count += 1
        key = command_id(CALLER, str(self.count))
        command = kind(caller=CALLER, key=key, customers=customers, request_hash=key.bytes, **fields)
        try:
            return (await self.bank.engine.submit(command)).outcome
        except BillfoldError as refused:
            return refused

    async def customer(self, name):
        customer_id = derive(SEED, command_id(CALLER, name), 0)
        await self.do(
            EnrolCustomer, (customer_id,), partner_id=PARTNER, role="customer", type="BUSINESS", name=name, profile={}
        )
        return customer_id

    async def pocket(self, customer_id, *, weeks=4, reinvest=4):
        outcome = await self.do(
            OpenPocket,
            (customer_id,),
            partner_id=PARTNER,
            name=f"{weeks} weeks",
            deposit_weeks=weeks,
            reinvestment_weeks=reinvest,
        )
        return UUID(outcome["pocket_id"]), UUID(outcome["portal_id"])

    async def deposit(self, customer_id, pocket, cents, rail="WIRE"):
        pocket_id, portal_id = pocket
        return await self.do(
            ReceiveMoney,
            (customer_id,),
            rail=rail,
            portal_id=portal_id,
            pocket_id=pocket_id,
            amount=cents,
            description="a deposit",
            details={},
        )

    async def transfer(self, payer, origin, payee, destination, cents, **fields):
        customers = (payer,) if payer == payee else (payer, payee)
        kind = "INTERNAL_REALLOCATION" if payer == payee else "PEER_TO_PEER"
        return await self.do(
            TransferOnUs,
            customers,
            transfer_id=fields.pop("transfer_id", None),
            type=kind,
            from_pocket_id=origin[0],
            to_pocket_id=destination[0],
            amount=cents,
            partner_id=PARTNER,
            **fields,
        )

    async def until(self, day, hour=10):
        await self.clock.set_to(et_instant(day, hour))


async def live(dsn):
    """Found the bank in a migrated database and let nine weeks go by."""
    bank = await open_bank(dsn)
    bank.engine.terms = msgspec.structs.replace(bank.engine.terms, ach_credit_hold_days=2)
    town = Town(bank)
    names = ("Anna", "Bert", "Carl", "Dora")
    anna, bert, carl, dora = [await town.customer(name) for name in names]
    short, long = await town.pocket(anna), await town.pocket(anna, weeks=26, reinvest=13)
    berts, carls = await town.pocket(bert, weeks=52), await town.pocket(carl, reinvest=None)
    doras, spare = await town.pocket(dora), await town.pocket(dora, weeks=13)
    await town.until(date(2025, 6, 2))
    for who, where, cents in (
        (anna, short, 250_000_00),
        (anna, long, 100_000_37),
        (bert, berts, 80_000_11),
        (carl, carls, 33_333_33),
        (dora, doras, 12_345_67),
        (dora, spare, 777_77),
    ):
        await town.deposit(who, where, cents)
    await town.deposit(bert, berts, 20_000_00, rail="ACH")
    await _pay(town, anna, short, long=long, bert=bert, berts=berts, carl=carl, carls=carls)
    await _change(town, anna, short, bert=bert, berts=berts)
    await _operate(town, bert, berts, carl=carl, carls=carls)
    await _end(town, anna, long, dora=dora, doras=doras, spare=spare)
    await town.until(date(2025, 6, 6), 18)
    await town.deposit(carl, carls, 5_000_00)
    await town.transfer(bert, berts, carl, destination=carls, cents=1_500_00, order=AT_NIGHT)
    await town.until(date(2025, 6, 10))
    await town.transfer(anna, long, anna, destination=short, cents=20_000_00, order=IN_KIND)
    await _travel(town, anna, long)
    await town.until(date(2025, 7, 3))
    await town.transfer(carl, carls, anna, destination=short, cents=2_222_22)
    await town.until(date(2025, 8, 5))
    await town.transfer(anna, short, bert, destination=berts, cents=40_000_00)
    await town.deposit(anna, short, 1_000_00, rail="ACH")
    await close_bank(bank)


async def _pay(town, anna, short, long, bert, berts, carl, carls):
    await town.transfer(anna, short, bert, destination=berts, cents=10_000_00, order=RENT)
    await town.transfer(anna, short, anna, destination=long, cents=5_000_00)
    await town.transfer(anna, long, anna, destination=short, cents=3_000_00, order=IN_KIND)
    await town.transfer(bert, berts, carl, destination=carls, cents=100_01)
    await town.transfer(bert, berts, carl, destination=carls, cents=9_999_999_00)
    waiting = derive(SEED, command_id(CALLER, "waiting"), 0)
    for fields in ({"later": True}, {"later": True, "accepted": True}):
        await town.transfer(anna, short, bert, berts, 1_234_00, transfer_id=waiting, **fields)
    await town.transfer(bert, berts, anna, destination=long, cents=50_00, later=True)


async def _change(town, anna, short, bert, berts):
    await town.do(UpdateCustomer, (anna,), profile={"email": "anna@example.org"})
    network = await town.bank.pool.fetchval("SELECT network_address FROM portal WHERE portal_id = $1", berts[1])
    added = await town.do(
        AddCounterparty,
        (anna,),
        counterparty_name={"name": "Bert"},
        display_name=None,
        type="on_us",
        details={"account_number": network},
        target_customer_id=bert,
        target_pocket_id=berts[0],
    )
    await town.do(
        UpdateCounterparty, (anna,), counterparty_id=UUID(added["counterparty_id"]), display_name="B.", rename=True
    )
    opened = await town.do(OpenPortal, (anna,), pocket_id=short[0], name="second")
    await town.do(UpdatePortal, (anna,), portal_id=UUID(opened["portal_id"]), close=True)
    await town.do(SetPocketState, (bert,), pocket_id=berts[0], status="FROZEN")
    await town.transfer(bert, berts, anna, destination=short, cents=1_00)
    await town.do(SetPocketState, (bert,), pocket_id=berts[0], status="OPEN")


async def _operate(town, bert, berts, carl, carls):
    """Suspense, credits, and a credit that is taken back after it was spent."""
    house = (bank_customer_id(town.bank.seed),)
    items = [derive(SEED, command_id(CALLER, f"item {n}"), 0) for n in range(5)]
    for nth, item_id in enumerate(items):
        await town.do(
            HoldInSuspense,
            house,
            item_id=item_id,
            rail=("WIRE", "ACH")[nth % 2],
            direction=("CREDIT", "DEBIT")[nth == 1],
            amount=1_000_00 + nth,
            reason=f"because {nth}",
            details={"description": f"item {nth}"},
            settles_on=date(2025, 6, 4) if nth else None,
        )
    for item_id in items[:2]:
        await town.do(ReturnFromSuspense, house, item_id=item_id, reason="NO_ACCOUNT", references=(item_id,))
    await town.do(
        AssignFromSuspense,
        (*house, carl),
        item_id=items[2],
        pocket_id=carls[0],
        portal_id=carls[1],
        references=(items[2],),
    )
    purse = await town.pocket(bert)
    given = await town.do(
        PostGoodwillCredit, (bert,), pocket_id=purse[0], amount=300_00, credit_type="PROMOTION", description="welcome"
    )
    await town.transfer(bert, purse, bert, destination=berts, cents=200_00)
    activity_id = UUID(given["activity_id"])
    await town.do(
        ReverseTransaction, (bert,), activity_id=activity_id, description="a mistake", references=(activity_id,)
    )
    await town.deposit(bert, purse, 50_00)
    await town.do(
        AdjustPocket, (carl,), pocket_id=carls[0], direction="DEBIT", amount=10_00, description="an adjustment"
    )


async def _travel(town, anna, long):
    """Bills come from elsewhere, and go there: one delivery is taken, one refused."""
    bill = await town.bank.pool.fetchval(
        "SELECT asset FROM account WHERE kind = 'lot' AND pocket_id = $1 AND credits > debits"
        " ORDER BY account_no LIMIT 1",
        long[0],
    )
    ids = [derive(SEED, command_id(CALLER, f"bills {n}"), 0) for n in range(3)]
    common = {"pocket_id": long[0], "cusip": bill, "counterparty_name": "Elsewhere"}
    await town.do(
        ReceiveBills,
        (anna,),
        transfer_id=ids[0],
        units=20,
        acquired_on=date(2025, 6, 9),
        cost_cents=1_950_00,
        counterparty_account="1",
        **common,
    )
    await town.until(date(2025, 6, 12))
    for nth, (transfer_id, reason) in enumerate(zip(ids[1:], (None, "UNKNOWN"), strict=True)):
        await town.do(
            DeliverBills, (anna,), transfer_id=transfer_id, units=30 + nth, counterparty_account=str(nth + 2), **common
        )
        await town.do(EndDelivery, (anna,), transfer_id=transfer_id, reason=reason, references=(transfer_id,))


async def _end(town, anna, long, dora, doras, spare):
    await town.until(date(2025, 6, 4))
    await town.transfer(dora, spare, anna, destination=long, cents=None)
    await town.do(UpdatePocket, (dora,), pocket_id=spare[0], close_for="not needed")
    await town.transfer(dora, doras, anna, destination=long, cents=None)
    await town.do(CloseCustomer, (dora,), reason="moved away")
    assert timedelta(0) < await town.bank.now() - et_instant(date(2025, 6, 2), 9)
