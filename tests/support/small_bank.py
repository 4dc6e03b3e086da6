"""A small deterministic bank with every kind of row, for tests of checks."""

from contextlib import suppress
from datetime import date, timedelta
from uuid import UUID

import msgspec
from tests.support.whole_bank import SEED, EngineCommands, close_bank, open_bank

from billfold.accounts.counterparties.commands import UpdateCounterparty
from billfold.accounts.customers.commands import CloseCustomer, UpdateCustomer
from billfold.accounts.holds.commands import PlaceHold
from billfold.accounts.pockets.commands import SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import OpenPortal, UpdatePortal
from billfold.dual_control.decisions import propose, withdraw
from billfold.dual_control.store import FreezeSubject
from billfold.identity.operators import Operator
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.adjustments.rules import AdjustPocket, PostGoodwillCredit, ReverseTransaction
from billfold.payments.custody.rules import DeliverBills, EndDelivery, ReceiveBills
from billfold.payments.on_us.commands import TransferOrder
from billfold.payments.suspense.rules import AssignFromSuspense, HoldInSuspense, ReturnFromSuspense
from billfold.platform.dates import et_instant
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id, derive
from billfold.sandbox.control.clock_stepper import ClockStepper

CALLER = "small bank"
IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")
RENT, AT_NIGHT = TransferOrder(description="rent"), TransferOrder(description="at night")


def named(what):
    """Return an id that is the same in every run."""
    return derive(SEED, command_id(CALLER, what), 0)


class SmallBank(EngineCommands):
    """Four customers with their pockets, and a clock."""

    def __init__(self, bank):
        super().__init__(bank, CALLER)
        self.clock = ClockStepper(bank)

    async def until(self, day, hour=10):
        await self.clock.set_to(et_instant(day, hour))

    async def begin(self):
        self.anna, self.bert, self.carl, self.dora = [
            await self.new_customer(name) for name in ("Anna", "Bert", "Carl", "Dora")
        ]
        self.short = await self.new_pocket(self.anna)
        self.long = await self.new_pocket(self.anna, weeks=26, reinvest=13)
        self.berts = await self.new_pocket(self.bert, weeks=52)
        self.carls = await self.new_pocket(self.carl, reinvest=None)
        self.doras, self.spare = await self.new_pocket(self.dora), await self.new_pocket(self.dora, weeks=13)
        await self.until(date(2025, 6, 2))
        for place, cents in (
            (self.short, 250_000_00),
            (self.long, 100_000_37),
            (self.berts, 80_000_11),
            (self.carls, 33_333_33),
            (self.doras, 12_345_67),
            (self.spare, 777_77),
        ):
            await self.receive_money(place, cents)
        await self.receive_money(self.berts, 20_000_00, rail="ACH")

    async def pay(self):
        await self.transfer(self.short, self.berts, 10_000_00, order=RENT)
        await self.transfer(self.short, self.long, 5_000_00)
        await self.transfer(self.long, self.short, 3_000_00, order=IN_KIND)
        await self.transfer(self.berts, self.carls, 9_999_999_00)
        for accepted in (False, True):
            await self.transfer(
                self.short, self.berts, 1_234_00, transfer_id=named("waiting"), later=True, accepted=accepted
            )
        await self.transfer(self.berts, self.long, 50_00, later=True)

    async def change(self):
        await self.submit(UpdateCustomer, self.anna, profile=None)
        network = await self.bank.pool.fetchval(
            "SELECT network_address FROM portal WHERE portal_id = $1", self.berts.portal
        )
        added = await self.add_counterparty(
            self.anna,
            "on_us",
            details={"account_number": network},
            verification=None,
            target_customer_id=self.bert,
            target_pocket_id=self.berts.id,
        )
        linked = UUID(added["counterparty_id"])
        await self.submit(UpdateCounterparty, self.anna, counterparty_id=linked, display_name="B.", rename=True)
        opened = await self.submit(OpenPortal, self.anna, pocket_id=self.short.id, name="second")
        await self.submit(UpdatePortal, self.anna, portal_id=UUID(opened["portal_id"]), close=True)
        await self.submit(SetPocketState, self.bert, pocket_id=self.berts.id, status="FROZEN")
        with suppress(Refused):
            await self.transfer(self.berts, self.short, 1_00)
        await self.submit(SetPocketState, self.bert, pocket_id=self.berts.id, status="OPEN")

    async def operate(self):
        """Suspense, credits, and a credit that is taken back after it was spent."""
        house = bank_customer_id(self.bank.seed)
        items = [named(f"item {n}") for n in range(5)]
        for nth, item_id in enumerate(items):
            await self.submit(
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
            await self.submit(ReturnFromSuspense, house, item_id=item_id, reason="NO_ACCOUNT", references=(item_id,))
        await self.submit(
            AssignFromSuspense,
            house,
            self.carl,
            item_id=items[2],
            pocket_id=self.carls.id,
            portal_id=self.carls.portal,
            references=(items[2],),
        )
        purse = await self.new_pocket(self.bert)
        given = await self.submit(
            PostGoodwillCredit,
            self.bert,
            pocket_id=purse.id,
            amount=300_00,
            credit_type="PROMOTION",
            description="welcome",
        )
        await self.transfer(purse, self.berts, 200_00)
        activity_id = UUID(given["activity_id"])
        await self.submit(
            ReverseTransaction, self.bert, activity_id=activity_id, description="a mistake", references=(activity_id,)
        )
        await self.receive_money(purse, 50_00)
        await self.submit(
            AdjustPocket,
            self.carl,
            pocket_id=self.carls.id,
            direction="DEBIT",
            amount=10_00,
            description="an adjustment",
        )

    async def end(self):
        """One customer takes everything out and leaves."""
        await self.until(date(2025, 6, 4))
        await self.transfer(self.spare, self.long, None)
        await self.submit(UpdatePocket, self.dora, pocket_id=self.spare.id, close_for="not needed")
        await self.transfer(self.doras, self.long, None)
        with suppress(Refused):
            await self.submit(CloseCustomer, self.dora, reason="moved away")
        assert timedelta(0) < await self.bank.now() - et_instant(date(2025, 6, 2), 9)

    async def propose_freeze(self):
        """An operator proposes a freeze, and withdraws it."""
        by, subject = Operator.of_command_line("olga"), FreezeSubject.CUSTOMER
        made = await propose(self.bank, subject, self.anna, freezes=True, reason="a doubt", by=by)
        await withdraw(self.bank, made.proposal_id, by=by)

    async def move_bills(self):
        """Bills come from elsewhere, and go there: one delivery is taken, one refused."""
        bill = await self.bank.pool.fetchval(
            "SELECT asset FROM account WHERE kind = 'lot' AND pocket_id = $1 AND credits > debits"
            " ORDER BY account_no LIMIT 1",
            self.long.id,
        )
        common = {"pocket_id": self.long.id, "cusip": bill, "counterparty_name": "Elsewhere"}
        await self.submit(
            ReceiveBills,
            self.anna,
            transfer_id=named("bills 0"),
            units=20,
            acquired_on=date(2025, 6, 9),
            cost_cents=1_950_00,
            counterparty_account="1",
            **common,
        )
        await self.until(date(2025, 6, 12))
        for nth, reason in ((1, None), (2, "UNKNOWN")):
            sent = {"transfer_id": named(f"bills {nth}")}
            await self.submit(DeliverBills, self.anna, units=29 + nth, counterparty_account=f"{nth}", **sent, **common)
            await self.submit(EndDelivery, self.anna, reason=reason, references=tuple(sent.values()), **sent)


async def live(dsn):
    """Found the bank in a migrated database and let nine weeks go by."""
    bank = await open_bank(dsn)
    bank.engine.terms = msgspec.structs.replace(bank.engine.terms, ach_credit_hold_days=2)
    small = SmallBank(bank)
    await small.begin()
    await small.pay()
    await small.change()
    await small.operate()
    await small.propose_freeze()
    await small.end()
    await small.until(date(2025, 6, 6), 18)
    await small.receive_money(small.carls, 5_000_00)
    await small.transfer(small.berts, small.carls, 1_500_00, order=AT_NIGHT)
    await small.until(date(2025, 6, 10))
    await small.transfer(small.long, small.short, 20_000_00, order=IN_KIND)
    await small.move_bills()
    await small.until(date(2025, 7, 3))
    await small.transfer(small.carls, small.short, 2_222_22)
    await small.until(date(2025, 8, 5))
    await small.transfer(small.short, small.berts, 40_000_00)
    for number in range(2):
        hold = {"hold_id": named(f"hold {number}"), "pocket_id": small.short.id}
        until = et_instant(date(2025, 8, 6), 12)
        await small.submit(PlaceHold, small.anna, amount=700_00, until=until, reason="a deposit", **hold)
        order = TransferOrder(hold_id=hold["hold_id"])
        named_hold = {"order": order, "hold_id": order.hold_id, "references": order.referenced}
        await small.transfer(small.short, small.long, (700_00, 200_00)[number], **named_hold)
    await small.receive_money(small.short, 1_000_00, rail="ACH")
    await close_bank(bank)
