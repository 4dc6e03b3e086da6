"""What is on a rail and not explained is said, to the cent."""

from datetime import date

from billfold.payments.clearing.report import ClearingReport
from billfold.payments.clearing.rules import ClearingTotals

DAY = date(2025, 6, 4)


def test_payments_under_way_explain_what_their_rail_holds():
    dates = [ClearingTotals("ACH", DAY, 3, inflow=500_00, outflow=200_00, settled_in=100_00, settled_out=0)]
    shown = ClearingReport({"rail:ach": -200_00}, dates, [])
    assert shown.explained("ACH") == -200_00
    assert shown.unexplained("ACH") == 0
    assert shown.unexplained("WIRE") == 0


def test_what_no_payment_explains_is_left_over():
    shown = ClearingReport({"rail:ach": -200_01, "rail:wire": 5}, [], [])
    assert (shown.unexplained("ACH"), shown.unexplained("WIRE")) == (-200_01, 5)
