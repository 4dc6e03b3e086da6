"""The card processor of the bank, and for whom it may issue a card."""

from uuid import UUID

from billfold.accounts.pockets.rules import require_usable
from billfold.accounts.pockets.store import get_pocket
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.payments.cards.ports import CardProcessor
from billfold.platform.errors import NotFound, Refused


def processor_of(bank: Bank) -> CardProcessor:
    """Return it. Refuses: rail-not-available where the bank has none."""
    processor = bank.ports.get(CardProcessor)
    if processor is None:
        raise Refused("rail-not-available", "The bank has no card processor.")
    return processor


async def holder_of(bank: Bank, customer_id: UUID, pocket_id: UUID) -> CustomerRow:
    """Return the holder of a card that is to be issued: refused later, it would leave a number that is nobody's.

    Raises NotFound. Refuses: customer-not-open, pocket-not-open, pocket-frozen.
    """
    customer = await find_customer(bank.pool, customer_id)
    if customer is None:
        raise NotFound("There is no such customer.")
    require_usable(customer.account_status, await get_pocket(bank.pool, customer_id, pocket_id))
    return customer
