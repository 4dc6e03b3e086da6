"""A bank whose desk is worked by hand: its operators, and the executions that they enter."""

from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.money import cents_for
from billfold.trading.commands import NewExecution
from billfold.trading.decisions import cover_now, propose_executions
from billfold.trading.store import get_order, list_live_orders
from billfold.trading.worker import DeskRounds

OLGA, OTTO = Operator.of_command_line("olga"), Operator.of_command_line("otto")


class DeskByHand:
    """Places orders, enters executions and confirms them, as two people do."""

    def __init__(self, bank):
        self.bank, self.count = bank, 0
        self.bank_id = bank_customer_id(bank.seed)

    async def send_orders(self):
        """Place orders for everything that is not covered, and put them on the list; return them."""
        await cover_now(self.bank, cusip=None, by=OLGA)
        await DeskRounds().run(self.bank)
        return await list_live_orders(self.bank.pool, self.bank_id)

    async def fill_of(self, order, *, units=None, off=0, dealer="citadel", **fields):
        """Return a fill of an order at a distance from its mark."""
        self.count += 1
        units, price = units or order.open_units, order.mark_micros + off
        given = {
            "order_id": order.order_id,
            "dealer": dealer,
            "reference": f"T-{self.count}",
            "side": order.side,
            "cusip": order.cusip,
            "units": units,
            "price_micros": price,
            "money": cents_for(units, price),
            "settles_on": order.settles_on,
            "executed_at": await self.bank.now(),
        }
        return NewExecution(**given | fields)

    async def book(self, *fills):
        """Propose fills and confirm them; return the outcome."""
        made = await propose_executions(self.bank, fills, source="by phone", by=OLGA)
        assert not made.refused, made.refused
        return await self.confirm(made.proposal)

    async def confirm(self, proposal):
        """Confirm a proposal as the second person; return the outcome."""
        return (await confirm(self.bank, proposal.proposal_id, by=OTTO)).outcome

    async def order(self, order_id):
        return await get_order(self.bank.pool, self.bank_id, order_id)
