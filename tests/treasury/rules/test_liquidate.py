"""Sales from a lot: its share of each basis, and the realized gain."""

from datetime import date

from tests.fixtures.teller import Teller

from billfold.ledger.book.postings import TradeEntry
from billfold.payments.on_us.commands import TransferOrder
from billfold.platform.dates import et_instant
from billfold.platform.money import round_half_up

IN_KIND = TransferOrder(transfer_type="SECURITY_TRANSFER")


def test_a_sale_allocates_its_share_of_the_tax_and_earnings_basis():
    teller = Teller()
    giver, holder = teller.pocket(), teller.pocket()
    teller.deposit(giver, 10_000_00)
    teller.bank.advance(et_instant(date(2025, 6, 12), 10))
    teller.move(giver, holder, 9_000_00, order=IN_KIND)
    (lot,) = holder.lots
    units, tax, earnings, before = lot.units, lot.tax_basis, lot.earnings_basis, holder.realised
    assert tax < earnings, "the bills came at their value, above what the giver had paid"

    teller.move(holder, giver, 3_000_00)

    sale = teller.bank.tables[TradeEntry][-2]
    assert (sale.pocket_id, sale.activity) == (holder.pocket_id, "SELL")
    assert sale.units == units - lot.units == 31
    assert sale.tax_basis == round_half_up(tax * sale.units, units) == tax - lot.tax_basis
    assert sale.earnings_basis == round_half_up(earnings * sale.units, units) == earnings - lot.earnings_basis
    assert holder.realised - before == sale.notional - sale.earnings_basis
