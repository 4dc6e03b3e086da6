"""Checks of bills from and to other custodians: each transfer equals its commands' outcomes and its trades."""

from billfold.ledger.checks import TrackedTable, outcome_checks
from billfold.payments.custody.rules import RECORDED, DeliverBills, EndDelivery, ReceiveBills
from billfold.platform.database.checks import Check

CHECKS = (
    *outcome_checks(
        TrackedTable("security_transfer", "transfer_id", (ReceiveBills, DeliverBills), created_at="created_at"),
        columns={name: name for name in RECORDED},
        ended_by=(EndDelivery,),
        ended_at="ended_at",
        initial_status="b.outcome->>'status'",
        ended={"reason": "reason"},
    ),
    Check(
        "security_transfer",
        "its trades move {came} units in and {went} out",
        """SELECT t.customer_id, t.transfer_id, m.came, m.went FROM security_transfer t
             LEFT JOIN (
               SELECT customer_id, transfer_id,
                      coalesce(sum(units) FILTER (WHERE incoming), 0) AS came,
                      coalesce(sum(units) FILTER (WHERE NOT incoming), 0) AS went
                 FROM trade WHERE activity = 'EXTERNAL_SECURITY_TRANSFER'
                GROUP BY 1, 2) m USING (customer_id, transfer_id)
            WHERE (m.came, m.went) IS DISTINCT FROM
                  (CASE WHEN t.direction = 'IN' OR t.status = 'REJECTED' THEN t.units ELSE 0 END,
                   CASE WHEN t.direction = 'OUT' THEN t.units ELSE 0 END)""",
    ),
)
COUNTED = ("security_transfer",)
