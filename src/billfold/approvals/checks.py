"""Dual control: no request was executed without the approvals that it required."""

from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.approvals.rules import challenge_of, challenge_of_list, decision_hash
from billfold.identity.users import totp
from billfold.identity.users.rules import Confirmation
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Check, Findings
from billfold.platform.database.connection import Connection

_CONTENT_HASH = """
SELECT customer_id, request_id FROM {table}
 WHERE content_hash IS DISTINCT FROM sha256(convert_to(content::text, 'UTF8'))
"""
# A change confirmed by the operator needs no approval: the audit log records the operator.
_APPROVED = """
SELECT q.customer_id, q.request_id FROM {table} q
 WHERE q.status = 'APPROVED' AND (q.terms ->> 'required')::int > (
       SELECT count(DISTINCT v.user_id) FROM review v
        WHERE v.customer_id = q.customer_id AND v.request_id = q.request_id
          AND v.decision = 'APPROVED' AND v.voided_at IS NULL
          AND v.content_hash = q.content_hash AND v.user_id IS DISTINCT FROM q.user_id)
   {also}
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
                      UNION ALL SELECT customer_id, request_id, user_id FROM batch
                      UNION ALL SELECT customer_id, request_id, user_id FROM authorization_request) q
    ON q.customer_id = v.customer_id AND q.request_id = v.request_id AND q.user_id = v.user_id
"""
# Requests of earlier releases do not name their candidates.
_LATER_REVIEWER = """
SELECT v.customer_id, v.request_id, v.review_no
  FROM review v JOIN (SELECT customer_id, request_id, terms FROM transfer_request
                      UNION ALL SELECT customer_id, request_id, terms FROM batch
                      UNION ALL SELECT customer_id, request_id, terms FROM authorization_request) q
    ON q.customer_id = v.customer_id AND q.request_id = v.request_id
 WHERE v.voided_at IS NULL AND json_typeof(q.terms -> 'candidates') = 'object'
   AND q.terms -> 'candidates' -> v.member_id::text IS NULL
"""
_NOT_AUDITED = """
SELECT v.customer_id, v.request_id, v.review_no FROM review v
 WHERE NOT EXISTS (SELECT 1 FROM audit_entry a
                    WHERE a.customer_id = v.customer_id AND a.resource_id = v.request_id::text
                      AND a.member_id = v.member_id AND a.outcome = 'SUCCESS'
                      AND split_part(a.action, '.', 2) = lower(v.decision))
"""
_NOT_APPROVED = """
SELECT c.customer_id, c.command_id
  FROM command c LEFT JOIN transfer_request q
    ON q.customer_id = c.customer_id AND q.request_id = c.key
 WHERE c.caller = 'transfer-request' AND c.accepted AND q.status IS DISTINCT FROM 'APPROVED'
"""
# A run that needs no approval of its own has the content of its series, which needed them.
_NOT_OF_SERIES = """
SELECT q.customer_id, q.request_id
  FROM transfer_request q LEFT JOIN transfer_request s ON s.customer_id = q.customer_id AND s.request_id = q.series_id
 WHERE q.series_id IS NOT NULL AND (q.terms ->> 'required')::int = 0
   AND (s.status IS DISTINCT FROM 'APPROVED' OR s.series_state IS NULL OR q.member_id <> s.member_id
        OR q.content::jsonb #- '{transfer,id}' <> (s.content::jsonb - 'schedule') #- '{transfer,id}')
"""
_LISTED = """
SELECT DISTINCT b.customer_id, b.request_id, h.hash
  FROM batch b CROSS JOIN json_array_elements_text(
       CASE WHEN json_typeof(b.content -> 'rows') = 'array' THEN b.content -> 'rows' ELSE '[]' END) AS h(hash)
"""
# A row of a batch is one of those that its approval is bound to.
_NOT_OF_BATCH = f"""
SELECT q.customer_id, q.request_id
  FROM transfer_request q LEFT JOIN batch b ON b.customer_id = q.customer_id AND b.request_id = q.batch_id
  LEFT JOIN ({_LISTED}) l ON l.customer_id = q.customer_id AND l.request_id = q.batch_id
   AND l.hash = encode(q.content_hash, 'hex')
 WHERE q.batch_id IS NOT NULL
   AND (b.status = 'APPROVED' AND b.partner_id IS NULL AND q.member_id = b.member_id
        AND l.hash IS NOT NULL) IS NOT TRUE
"""
_BATCH_NOT_APPROVED = """
SELECT c.customer_id, c.command_id
  FROM command c LEFT JOIN batch b ON b.customer_id = c.customer_id AND b.request_id = c.key
 WHERE c.caller = 'batch' AND c.accepted AND (b.status = 'APPROVED' AND b.content_hash = c.request_hash) IS NOT TRUE
"""
_NOT_IN_BATCH = f"""
SELECT r.customer_id, r.batch_id, r.row_no
  FROM batch_row r LEFT JOIN ({_LISTED}) l ON l.customer_id = r.customer_id AND l.request_id = r.batch_id
   AND l.hash = encode(r.content_hash, 'hex')
 WHERE r.content IS NOT NULL
   AND (r.content_hash = sha256(convert_to(r.content::text, 'UTF8')) AND l.hash IS NOT NULL
        AND r.amount::text = coalesce(r.content ->> 'amount_usdc',
                                      r.content #>> '{{transfer,amount,amount_usdc}}', '0')) IS NOT TRUE
"""
_POLICY_NOT_APPROVED = """
SELECT p.customer_id, p.version
  FROM policy p LEFT JOIN authorization_request q ON q.customer_id = p.customer_id AND q.request_id = p.request_id
 WHERE (q.status = 'APPROVED' AND q.applied_at IS NOT NULL AND q.action = 'policy.update'
        AND q.content::jsonb #> '{change,document}' = p.document::jsonb
        AND (q.content #>> '{change,replaces}')::int = p.version - 1
        AND p.content_hash = sha256(convert_to(p.document, 'UTF8'))) IS NOT TRUE
"""
_UNKNOWN_POLICY = """
SELECT q.customer_id, q.request_id
  FROM transfer_request q LEFT JOIN policy p ON p.customer_id = q.customer_id AND p.version = q.policy_version
 WHERE q.policy_version IS NOT NULL AND p.version IS NULL
"""
_TABLES = ("transfer_request", "authorization_request", "batch")
CHECKS = (
    *(
        Check(table, "content_hash is not the hash of its content", _CONTENT_HASH.format(table=table))
        for table in _TABLES
    ),
    *(
        Check(
            table,
            "approved with fewer approvals than required",
            _APPROVED.format(table=table, also=_NOT_BY_OPERATOR if table == "authorization_request" else ""),
        )
        for table in _TABLES
    ),
    Check("transfer_request", "it is not what its series was approved for", _NOT_OF_SERIES),
    Check("transfer_request", "it is not among the rows that its batch was approved for", _NOT_OF_BATCH),
    Check("command", "its batch is not approved", _BATCH_NOT_APPROVED),
    Check("batch_row", "its content is not that of its batch", _NOT_IN_BATCH),
    Check("policy", "it is not the document that was approved", _POLICY_NOT_APPROVED),
    Check("transfer_request", "its policy has no such version", _UNKNOWN_POLICY),
    Check("review", "the reviewer is the requester", _SELF_REVIEWED),
    Check("review", "the reviewer was not eligible when the request was made", _LATER_REVIEWER),
    Check("review", "the audit log has no entry of this review", _NOT_AUDITED),
    Check("command", "its transfer request is not approved", _NOT_APPROVED),
)
_CONFIRMATIONS = """
SELECT a.customer_id, a.entry_no, a.resource_id, a.recorded_at, a.details::json -> 'confirmation' AS confirmation,
       count(*) OVER (PARTITION BY a.customer_id, a.member_id, a.details::json #>> '{confirmation,step}')
       - count(a.details::json #>> '{confirmation,decisions}') OVER (
           PARTITION BY a.customer_id, a.member_id, a.details::json #>> '{confirmation,step}',
                        a.details::json #>> '{confirmation,decisions}') AS other_uses,
       count(*) OVER (PARTITION BY a.customer_id, a.member_id, a.details::json #>> '{confirmation,decisions}',
                                   a.resource_id, a.details::json #>> '{confirmation,step}') AS same_request,
       v.customer_id IS NOT NULL AS is_reviewed
  FROM audit_entry a LEFT JOIN (
       SELECT DISTINCT customer_id, request_id::text AS request_id, member_id, decision,
              encode(content_hash, 'hex') AS content_hash FROM review) v
    ON v.customer_id = a.customer_id AND v.request_id = a.resource_id AND v.member_id = a.member_id
   AND v.decision = a.details::json #>> '{confirmation,decision}'
   AND v.content_hash = a.details::json #>> '{confirmation,content_hash}'
 WHERE a.outcome = 'SUCCESS' AND a.resource_type IN ('transfer_request', 'authorization_request', 'batch')
   AND a.details::json -> 'confirmation' IS NOT NULL
 ORDER BY a.customer_id, a.entry_no
"""


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify again how members confirmed their decisions, and that the confirmation matches the review."""
    async for row in conn.cursor(_CONFIRMATIONS, timeout=STATEMENT_TIMEOUT_SECONDS):
        findings.checked["confirmed decisions"] += 1
        key = {"customer_id": row["customer_id"], "entry_no": row["entry_no"]}
        if not row["is_reviewed"]:
            findings.add("audit_entry", key, "its confirmation belongs to no review", certainty=Certainty.DERIVED)
        elif (message := _mistake_in(row)) is not None:
            findings.add("audit_entry", key, message, certainty=Certainty.CHANGED)


def _mistake_in(row: Record) -> str | None:
    """Return the evidence that a decision was not confirmed by a passkey's signature or by a code valid at that time.

    A code signs nothing: the bank checked it at that time, and the MAC of the entry protects that result.
    """
    stored = msgspec.json.decode(row["confirmation"])
    kept = msgspec.convert(stored, Confirmation)
    decided = (UUID(row["resource_id"]), stored["decision"], stored["content_hash"])
    if kept.decisions and decision_hash(*decided) not in kept.decisions:
        return "it is not among the decisions that were confirmed together"
    if kept.method == "hwk":
        from billfold.identity.users import passkeys  # noqa: PLC0415 - loads WebAuthn, which only pages use otherwise

        challenge = (
            challenge_of_list(kept.nonce, kept.decisions) if kept.decisions else challenge_of(kept.nonce, *decided)
        )
        return None if passkeys.is_signed(kept, challenge) else "its signature does not match this decision"
    if not kept.step:  # of an earlier release
        return None
    if not totp.was_in_force(kept.step, row["recorded_at"]):
        return "its code was not in force then"
    has_other_use = row["other_uses"] > (0 if kept.decisions else 1) or row["same_request"] > 1
    return "its code has confirmed another decision" if has_other_use else None
