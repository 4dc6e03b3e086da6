"""Events and deliveries: sequences have no gap, and deliveries agree with their attempts.

No chain covers these rows: they follow from the log, and are compared with it. Events that the sequencer
has not read yet have no sequence, which is not a finding; nor are purged attempts, which show as
a delivery without tries that is not pending.
"""

from collections.abc import Iterator

from billfold.platform.database.checks import Certainty, Check

_SEQUENCING = (
    Check(
        "event_sequence",
        "the event was read, but its sequence is missing",
        """SELECT e.customer_id, e.event_no
             FROM event e JOIN event_reader r ON r.name = 'sequencer'
             JOIN customer c ON c.customer_id = e.customer_id AND c.partner_id IS NOT NULL
             LEFT JOIN event_sequence t ON t.customer_id = e.customer_id AND t.event_no = e.event_no
            WHERE t.event_no IS NULL AND pg_visible_in_snapshot(e.xid, r.position)""",
        certainty=Certainty.MISSING,
    ),
    Check(
        "event_sequence",
        "it differs from its event",
        """SELECT t.customer_id, t.event_no
             FROM event_sequence t LEFT JOIN event e USING (customer_id, event_no)
             LEFT JOIN customer c USING (customer_id)
            WHERE (e.event_id, e.kind, e.raised_at, c.partner_id)
               IS DISTINCT FROM (t.event_id, t.kind, t.raised_at, t.partner_id)""",
        certainty=Certainty.MISSING,
    ),
)

_DELIVERIES = (
    Check(
        "delivery",
        "its event or its sequence differs from the log",
        """SELECT d.subscription_id, d.event_id
             FROM delivery d LEFT JOIN subscription s USING (subscription_id)
             LEFT JOIN event_sequence t ON t.customer_id = d.customer_id AND t.event_no = d.event_no
             LEFT JOIN simulated_event m ON m.serial = d.simulated
            WHERE d.event_id IS DISTINCT FROM coalesce(t.event_id, m.event_id)
               OR d.sequence IS DISTINCT FROM
                  CASE WHEN s.customer_id IS NULL THEN t.partner_sequence
                       ELSE t.customer_sequence END
               OR (t.event_id IS NOT NULL AND t.partner_id <> s.partner_id)
               OR (s.customer_id IS NOT NULL AND t.customer_id <> s.customer_id)""",
        certainty=Certainty.MISSING,
    ),
    Check(
        "delivery",
        "tries or state differ from its attempts",
        """SELECT d.subscription_id, d.event_id
             FROM delivery d LEFT JOIN
                  (SELECT subscription_id, event_id, count(*) AS attempts,
                          bool_or(success) AS success, bool_and(success) AS always
                     FROM delivery_attempt GROUP BY 1, 2) a USING (subscription_id, event_id)
            WHERE d.attempts > coalesce(a.attempts, 0)
               OR (d.state = 'delivered' AND d.attempts > 0 AND a.success IS NOT TRUE)
               OR (d.state = 'failed' AND d.attempts > 0 AND coalesce(a.always, true))""",
    ),
    Check(
        "delivery_attempt",
        "its delivery is missing, or success differs from the response code",
        """SELECT a.attempt_id
             FROM delivery_attempt a LEFT JOIN delivery d USING (subscription_id, event_id)
            WHERE d.event_id IS NULL OR a.success <> (a.response_code BETWEEN 200 AND 299)""",
    ),
    Check(
        "subscription_queue",
        "deliveries are due, and the lane is not scheduled",
        """SELECT s.subscription_id
             FROM subscription s LEFT JOIN subscription_queue l USING (subscription_id)
            WHERE l.subscription_id IS NULL
               OR (s.status = 'enabled' AND l.due_at IS NULL AND l.worker_no IS NULL
                   AND EXISTS (SELECT 1 FROM delivery d WHERE d.due_at IS NOT NULL
                                  AND d.subscription_id = s.subscription_id))""",
        certainty=Certainty.MISSING,
    ),
)


def _sequences(owner_type: str) -> Iterator[Check]:
    """Numbers from one on without a gap, each customer's in the order of its events."""
    owner, number = f"{owner_type}_id", f"{owner_type}_sequence"
    yield Check(
        "event_sequence",
        f"the sequence of its {owner_type} has a gap",
        f"""SELECT customer_id, event_no FROM (
              SELECT customer_id, event_no, {number},
                     row_number() OVER (PARTITION BY {owner} ORDER BY {number}, event_no) AS should
                FROM event_sequence WHERE {number} IS NOT NULL) n
             WHERE {number} <> should""",
    )
    yield Check(
        "event_sequence",
        f"its order in the sequence of its {owner_type} differs from the log",
        f"""SELECT customer_id, event_no FROM (
              SELECT customer_id, event_no,
                     lag(event_no) OVER (PARTITION BY customer_id ORDER BY {number}) AS before
                FROM event_sequence WHERE {number} IS NOT NULL) n
             WHERE before > event_no""",
    )


CHECKS = (*_SEQUENCING, *_sequences("partner"), *_sequences("customer"), *_DELIVERIES)
COUNTED = ("event_sequence", "delivery", "delivery_attempt")
