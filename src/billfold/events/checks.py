"""What was told: every event has its place without a gap, and deliveries say what attempts say.

No chain covers these rows: they follow from the log, and are compared with it. What the sequencer
has not read yet has no place, and that is no finding; nor are attempts that were forgotten, as a
delivery without tries says that is not pending.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from billfold.verify.query_check import Check
from billfold.verify.report import DERIVED, MISSING, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection


async def check_event_sequences(conn: Connection, findings: Findings) -> None:
    """Run every check; the first bad rows of each are looked at."""
    for query in queries():
        for row in await conn.fetch(query.sql, timeout=STATEMENT_TIMEOUT_SECONDS):
            findings.add(query.check, query.table, dict(row), query.wrong, query.certainty)
    for name in ("told", "delivery", "delivery_attempt"):
        findings.checked[name] = await conn.fetchval(f"SELECT count(*) FROM {name}", timeout=STATEMENT_TIMEOUT_SECONDS)


def queries() -> Iterator[Check]:
    """Every check, the ones that name a row most surely first."""
    yield from _SEQUENCING
    for owner_type in ("partner", "customer"):
        yield from _sequences(owner_type)
    yield from _DELIVERIES


_SEQUENCING = (
    Check(
        "told",
        "told",
        "an event was read and has no place",
        """SELECT e.customer_id, e.event_no
             FROM event e JOIN event_reader r ON r.name = 'sequencer'
             JOIN customer c ON c.customer_id = e.customer_id AND c.partner_id IS NOT NULL
             LEFT JOIN told t ON t.customer_id = e.customer_id AND t.event_no = e.event_no
            WHERE t.event_no IS NULL AND pg_visible_in_snapshot(e.xid, r.position)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "places",
        "told",
        "it is not what the event says",
        """SELECT t.customer_id, t.event_no
             FROM told t LEFT JOIN event e USING (customer_id, event_no)
             LEFT JOIN customer c USING (customer_id)
            WHERE (e.event_id, e.kind, e.raised_at, c.partner_id)
               IS DISTINCT FROM (t.event_id, t.kind, t.raised_at, t.partner_id)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
)

_DELIVERIES = (
    Check(
        "deliveries",
        "delivery",
        "it is of no event, or not in its place",
        """SELECT d.subscription_id, d.event_id
             FROM delivery d LEFT JOIN subscription s USING (subscription_id)
             LEFT JOIN told t ON t.customer_id = d.customer_id AND t.event_no = d.event_no
             LEFT JOIN simulated_event m ON m.serial = d.simulated
            WHERE s.subscription_id IS NULL
               OR d.event_id IS DISTINCT FROM coalesce(t.event_id, m.event_id)
               OR d.sequence IS DISTINCT FROM
                  CASE WHEN s.customer_id IS NULL THEN t.partner_sequence
                       ELSE t.customer_sequence END
               OR (t.event_id IS NOT NULL AND t.partner_id <> s.partner_id)
               OR (s.customer_id IS NOT NULL AND t.customer_id <> s.customer_id)
               OR d.previous_sequence >= d.sequence
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "attempts",
        "delivery",
        "no attempt says what it says",
        """SELECT d.subscription_id, d.event_id
             FROM delivery d LEFT JOIN
                  (SELECT subscription_id, event_id, count(*) AS attempts,
                          bool_or(success) AS success, bool_and(success) AS always
                     FROM delivery_attempt GROUP BY 1, 2) a USING (subscription_id, event_id)
            WHERE d.tries > coalesce(a.attempts, 0)
               OR (d.state = 'delivered' AND d.tries > 0 AND a.success IS NOT TRUE)
               OR (d.state = 'failed' AND d.tries > 0 AND coalesce(a.always, true))
               OR (d.state = 'pending') <> (d.due_at IS NOT NULL)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "answers",
        "delivery_attempt",
        "it is of no delivery, or no such success",
        """SELECT a.attempt_id
             FROM delivery_attempt a LEFT JOIN delivery d USING (subscription_id, event_id)
            WHERE d.event_id IS NULL OR a.success <> (a.response_code BETWEEN 200 AND 299)
            ORDER BY 1 LIMIT 100""",
    ),
    Check(
        "lanes",
        "subscription_lane",
        "something waits on it and nobody will come",
        """SELECT s.subscription_id
             FROM subscription s LEFT JOIN subscription_lane l USING (subscription_id)
            WHERE l.subscription_id IS NULL
               OR (s.status = 'enabled' AND l.due_at IS NULL AND l.courier_no IS NULL
                   AND EXISTS (SELECT 1 FROM delivery d WHERE d.due_at IS NOT NULL
                                  AND d.subscription_id = s.subscription_id))
            ORDER BY 1 LIMIT 100""",
    ),
)


def _sequences(owner_type: str) -> Iterator[Check]:
    """Numbers from one on without a gap, each customer's in the order of his events."""
    owner, number = f"{owner_type}_id", f"{owner_type}_sequence"
    yield Check(
        "sequences",
        "told",
        f"the sequence of its {owner_type} has a gap here",
        f"""SELECT customer_id, event_no FROM (
              SELECT customer_id, event_no, {number},
                     row_number() OVER (PARTITION BY {owner} ORDER BY {number}, event_no) AS should
                FROM told WHERE {number} IS NOT NULL) n
             WHERE {number} <> should ORDER BY 1, 2 LIMIT 100""",
        DERIVED,
    )
    yield Check(
        "order",
        "told",
        f"it comes in another order for its {owner_type} than it happened",
        f"""SELECT customer_id, event_no FROM (
              SELECT customer_id, event_no,
                     lag(event_no) OVER (PARTITION BY customer_id ORDER BY {number}) AS before
                FROM told WHERE {number} IS NOT NULL) n
             WHERE before > event_no ORDER BY 1, 2 LIMIT 100""",
        DERIVED,
    )
