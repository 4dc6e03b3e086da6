"""Dual control: nothing that was asked for was carried out without the voices it needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.verify.query_check import Check, run_checks

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.report import Findings

_CONTENT_HASH = """
SELECT customer_id, request_id FROM {table}
 WHERE content_hash IS DISTINCT FROM sha256(convert_to(content::text, 'UTF8'))
 ORDER BY 1, 2 LIMIT 100
"""
# Of the operator a change needs no voice: the audit log names him.
_APPROVED = """
SELECT q.customer_id, q.request_id FROM {table} q
 WHERE q.status = 'APPROVED' AND (q.terms ->> 'required')::int > (
       SELECT count(DISTINCT v.user_id) FROM review v
        WHERE v.customer_id = q.customer_id AND v.request_id = q.request_id
          AND v.decision = 'APPROVED' AND v.voided_at IS NULL
          AND v.content_hash = q.content_hash AND v.user_id IS DISTINCT FROM q.user_id)
   {also}
 ORDER BY 1, 2 LIMIT 100
"""
_NOT_BY_OPERATOR = """
   AND NOT EXISTS (SELECT 1 FROM audit_entry a
                    WHERE a.customer_id = q.customer_id AND a.actor = 'OPERATOR'
                      AND a.action = 'authorization_request.approved'
                      AND a.resource_id = q.request_id::text)
"""
_SELF_REVIEWED = """
SELECT v.customer_id, v.request_id, v.review_no
  FROM review v JOIN (SELECT customer_id, request_id, user_id FROM transfer_request
                      UNION ALL SELECT customer_id, request_id, user_id FROM change_request) q
    ON q.customer_id = v.customer_id AND q.request_id = v.request_id AND q.user_id = v.user_id
 ORDER BY 1, 2, 3 LIMIT 100
"""
_NOT_AUDITED = """
SELECT v.customer_id, v.request_id, v.review_no FROM review v
 WHERE NOT EXISTS (SELECT 1 FROM audit_entry a
                    WHERE a.customer_id = v.customer_id AND a.resource_id = v.request_id::text
                      AND a.member_id = v.member_id AND a.outcome = 'SUCCESS'
                      AND split_part(a.action, '.', 2) = lower(v.decision))
 ORDER BY 1, 2, 3 LIMIT 100
"""
_NOT_APPROVED = """
SELECT c.customer_id, c.command_id
  FROM command c LEFT JOIN transfer_request q
    ON q.customer_id = c.customer_id AND q.request_id = c.key
 WHERE c.caller = 'transfer-request' AND c.accepted AND q.status IS DISTINCT FROM 'APPROVED'
 ORDER BY 1, 2 LIMIT 100
"""
_TABLES = ("transfer_request", "change_request")
_QUERIES = (
    *(
        Check("approvals", table, "its hash is of something else", _CONTENT_HASH.format(table=table))
        for table in _TABLES
    ),
    *(
        Check(
            "approvals",
            table,
            "it was approved by fewer than it needs",
            _APPROVED.format(table=table, also=_NOT_BY_OPERATOR if table == "change_request" else ""),
        )
        for table in _TABLES
    ),
    Check("reviews", "review", "it is about the reviewer's own request", _SELF_REVIEWED),
    Check("unheard", "review", "the audit log knows of nobody who said so", _NOT_AUDITED),
    Check("unapproved", "command", "it carries out what nobody approved", _NOT_APPROVED),
)


async def check_approvals(conn: Connection, findings: Findings) -> None:
    """Compare what was carried out with what was asked for, and that with its reviews."""
    await run_checks(conn, findings, _QUERIES)
