"""Unexplained differences of a rail are reported, to the cent."""

from datetime import date

from billfold.payments.clearing.report import ClearingReport
from billfold.payments.clearing.rules import ClearingTotals

DAY = date(2025, 6, 4)


def test_payments_in_transit_explain_the_balance_of_their_rail():
    dates = [ClearingTotals("ACH", DAY, 3, inflow=500_00, outflow=200_00, settled_in=100_00, settled_out=0)]
    shown = ClearingReport({"rail:ach": -200_00}, dates, [])
    assert shown.explained("ACH") == -200_00
    assert shown.unexplained("ACH") == 0
    assert shown.unexplained("WIRE") == 0


def test_a_rail_balance_without_payments_is_unexplained():
    shown = ClearingReport({"rail:ach": -200_01, "rail:wire": 5}, [], [])
    assert (shown.unexplained("ACH"), shown.unexplained("WIRE")) == (-200_01, 5)
