"""Checks of suspense: every item equals its commands' outcomes, and the account is the sum of held items."""

from billfold.ledger.checks import TrackedTable, account_total, outcome_checks
from billfold.payments.suspense import rules
from billfold.platform.database.checks import Certainty, Check

CHECKS = (
    *outcome_checks(
        TrackedTable("suspense_item", "item_id", (rules.HoldInSuspense,), created_at="created_at"),
        # Outcomes are never rewritten: they keep the old name of the column.
        columns={name: name for name in rules.RECORDED} | {"entry_no": "journal_no"},
        ended_by=(
            rules.ReturnFromSuspense,
            rules.AssignFromSuspense,
            rules.ReleaseFromSuspense,
            rules.WriteOffFromSuspense,
        ),
        ended_at="ended_at",
        initial_status="'HELD'",
        ended={"ended_entry_no": "journal_no", "return_reason": "return_reason", "owner_id": "owner_id"},
    ),
    account_total(
        "suspense",
        """SELECT sum(CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END)
             FROM suspense_item WHERE status = 'HELD'""",
    ),
    Check(
        "suspense_item",
        "it is held, and no return is scheduled",
        """SELECT i.customer_id, i.item_id FROM suspense_item i
            WHERE i.rail = 'ACH' AND i.status = 'HELD' AND i.details::jsonb ? 'answer'
              AND NOT EXISTS (SELECT 1 FROM scheduled_job a
                               WHERE a.kind = 'ach.unclaimed' AND a.object_id = i.item_id)""",
        certainty=Certainty.SUSPECT,
    ),
)
COUNTED = ("suspense_item",)
