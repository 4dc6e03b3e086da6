"""A customer with a card and money: what happens to its payments, and what is seen of them."""

from uuid import UUID

from tests.support.cards import Holder

FUNDED = 5_000_00


class Cardholder(Holder):
    """A customer with a funded Pocket and a virtual card."""

    async def funded(self, cents=FUNDED):
        await self.desk.wire(self.pocket, cents)
        self.card = (await self.virtual_card())["card_id"]
        return self

    async def simulate(self, operation, **fields):
        body = {"card_id": self.card, **fields}
        return await self.desk.post(f"/api/v1/sandbox/card-{operation}/", body, status=202)

    async def authorize(self, cents, **fields):
        return await self.simulate("authorization", amount_usdc=cents, **fields)

    async def held(self, cents, **fields):
        """Return the reference of a purchase that is approved in full."""
        decided = await self.authorize(cents, **fields)
        assert (decided["decision"], decided["approved_amount"]) == ("APPROVED", cents)
        return decided["network_reference"]

    async def declined(self, reason, cents=10_00, **fields):
        decided = await self.authorize(cents, **fields)
        assert (decided["decision"], decided["approved_amount"], decided["reason"]) == ("DECLINED", 0, reason)

    async def listed(self, **filters):
        """Return (direction, status, cents) of the card's transactions, oldest first."""
        path = f"/api/v2/pockets/{self.pocket.id}/transactions/"
        items = await self.desk.pages(path, {"card[]": self.card, "type[]": "CARD", "order": "asc", **filters}, limit=3)
        return [(each["direction"], each["status"], each["amount"]["value"]) for each in items]

    async def portfolio(self):
        return (await self.desk.get(self.pocket.path))["portfolio"]

    async def money(self):
        """Return what the events said of the card's money, in their order."""
        rows = await self.desk.bank.pool.fetch(
            """SELECT kind, (payload->>'amount')::bigint AS cents FROM event
                WHERE customer_id = $1 AND kind LIKE 'card.transaction.%' ORDER BY event_no""",
            UUID(self.pocket.customer),
        )
        return [(row["kind"].rpartition(".")[2], row["cents"]) for row in rows]

    async def reserved(self):
        return await self.desk.bank.pool.fetchval(
            "SELECT reserved FROM account WHERE customer_id = $1 AND pocket_id = $2 AND kind = 'cash'", *self.pocket.key
        )
