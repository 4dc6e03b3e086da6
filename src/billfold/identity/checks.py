"""Checks of rights: roles, clients, keys and event addresses match their last audit entry."""

from billfold.audit.rules import RESOURCES, RIGHTS
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection

_CHANGED = "it differs from its last audit entry"
_DELETED = "it has an audit entry, but is missing"
_COMPARED = f"""
WITH proof AS (
  SELECT DISTINCT ON (a.customer_id, t.key, p.key) a.customer_id, t.key AS name, p.key AS id, p.value AS fingerprint
    FROM audit_entry a, json_each(a.details->'proves') t, json_each_text(t.value) p
   WHERE a.outcome = 'SUCCESS' AND a.resource_type = ANY($1)
   ORDER BY a.customer_id, t.key, p.key, a.entry_no DESC
), present AS ({" UNION ALL ".join(each.select() for each in RIGHTS)})
SELECT name, id, p.fingerprint IS NOT NULL AS is_proven, r.fingerprint IS NOT NULL AS is_there,
       p.fingerprint = r.fingerprint AS is_same
  FROM present r FULL JOIN proof p USING (customer_id, name, id)
 WHERE name = ANY($2)
"""


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Report each row that differs from the fingerprint in the last entry about it; count those without one."""
    keys = {each.name: each.key.partition(".")[2] for each in RIGHTS}
    for row in await conn.fetch(_COMPARED, list(RESOURCES), list(keys), timeout=STATEMENT_TIMEOUT_SECONDS):
        table = row["name"]
        findings.checked[table if row["is_proven"] else f"{table} (in no entry, not proven)"] += row["is_there"]
        if row["is_proven"] and not row["is_same"]:
            message = _CHANGED if row["is_there"] else _DELETED
            findings.add(table, {keys[table]: row["id"]}, message, certainty=Certainty.CHANGED)
