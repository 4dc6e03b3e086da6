"""Checks of holds that callers placed: a command placed each, a job ends it. Their columns have fingerprints."""

from billfold.accounts.holds.commands import EXPIRY_JOB, PlaceHold
from billfold.ledger.checks import TrackedTable, change_check, creation_checks
from billfold.platform.database.checks import Certainty, Check

CHECKS = (
    *creation_checks(TrackedTable("hold", "hold_id", (PlaceHold,), created_at="created_at")),
    change_check("hold", "updated_at", "hold_id"),
    Check(
        "hold",
        "it is active, and its expiry is not scheduled",
        f"""SELECT h.customer_id, h.hold_id FROM hold h WHERE h.status = 'ACTIVE' AND NOT EXISTS (
              SELECT 1 FROM scheduled_job j
               WHERE j.kind = '{EXPIRY_JOB}' AND j.object_id = h.hold_id AND j.customer_id = h.customer_id
                 AND j.due_at >= h.until)""",
        certainty=Certainty.DERIVED,
    ),
)
