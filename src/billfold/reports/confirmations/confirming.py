"""Makes the confirmation of a trade when it is first requested, and keeps it: it is the same file ever after."""

from typing import Final

from billfold.accounts.trades.schemas import priced_from, settles_on
from billfold.accounts.trades.store import TradeRow
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id
from billfold.reports.confirmations import store
from billfold.reports.confirmations.contents import compose_confirmation, confirmation_number
from billfold.reports.confirmations.types import Capacity
from billfold.reports.downloads import store as downloads
from billfold.reports.downloads.files import keep_file
from billfold.reports.downloads.types import ReportFile
from billfold.reports.entries.store import get_account, position_of
from billfold.reports.printing.printing import bank_of
from billfold.reports.printing.recipients import recipient_of
from billfold.reports.printing.signing import Subject, print_signed

PDF: Final = "application/pdf"
# Each capacity has a file of its own: one that was made before a day's hours were corrected is not handed out again.
_FILES: Final = {Capacity.AGENT: "confirmation", Capacity.PRINCIPAL: "confirmation as principal"}


async def get_confirmation(bank: Bank, trade: TradeRow, capacity: Capacity) -> ReportFile:
    """Return the confirmation of a purchase or a sale that the bank made in a capacity."""
    file_id = command_id(_FILES[capacity], trade.trade_id)
    try:
        return await downloads.get_file(bank.pool, trade.customer_id, file_id)
    except NotFound:
        pdf = await _print(bank, trade, capacity)
    name = f"confirmation-{confirmation_number(trade)}.pdf"
    kept = await keep_file(bank, (trade.customer_id, file_id), pdf, name=name, media_type=PDF, at=trade.traded_at)
    async with bank.pool.acquire() as conn, conn.transaction():
        await downloads.add_file(conn, kept)
    return await downloads.get_file(bank.pool, trade.customer_id, file_id)


async def _print(bank: Bank, trade: TradeRow, capacity: Capacity) -> bytes:
    customer_id, pocket_id, at = trade.customer_id, trade.pocket_id, trade.traded_at
    account = await get_account(bank.pool, customer_id, pocket_id, at)
    document = compose_confirmation(
        trade,
        bank.market.bill(trade.cusip),
        account,
        lots=await store.list_lots(bank.pool, trade),
        priced_from=priced_from(trade, bank.calendars),
        settles_on=settles_on(trade, bank.calendars),
        capacity=capacity,
        bank=bank_of(bank.settings),
        recipient=await recipient_of(bank, customer_id),
    )
    position = await position_of(bank.pool, customer_id, trade.entry_no)
    return await print_signed(bank, document, Subject(customer_id, pocket_id, account.name, at, position))
