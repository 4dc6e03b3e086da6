"""Files that customers download: their parts are all there, and the bank has signed what lies beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from billfold.data_keys.types import SEALED_BYTES
from billfold.platform.checks import Certainty, declared
from billfold.reports.proofs.attach import MARKER
from billfold.reports.proofs.document_keys import list_public_keys
from billfold.reports.proofs.signatures import DOCUMENT, Unproven, verify
from billfold.reports.proofs.types import SignedManifest

if TYPE_CHECKING:
    from billfold.platform.checks import Findings
    from billfold.platform.database.connection import (Connection)

COUNTED = ("report_file", "report_file_part")
_ROWS: Final = 500
_SIGNED = """
SELECT customer_id, file_id, sha256, proof FROM report_file WHERE file_id > $1 AND proof IS NOT NULL
 ORDER BY file_id LIMIT $2
"""
_FIRST: Final = "00000000-0000-0000-0000-000000000000"
CHECKS = declared(
    {
        ("report_file", Certainty.CHANGED): {
            "its parts together are not as long as it is": f"""
                SELECT t.customer_id, t.file_id FROM report_file t JOIN (
                    SELECT file_id, sum(size_bytes) - count(*) * {SEALED_BYTES} AS size FROM report_file_part GROUP BY 1
                  ) p USING (file_id) WHERE p.size <> t.size_bytes""",
        },
        ("report_file_part", Certainty.MISSING): {
            "the file has no parts": """
                SELECT t.file_id FROM report_file t WHERE t.size_bytes > 0 AND NOT EXISTS (
                  SELECT 1 FROM report_file_part p WHERE p.file_id = t.file_id)""",
            "a part before it is missing": """
                SELECT p.file_id, max(p.part_no) AS part_no FROM report_file_part p
                 GROUP BY p.file_id HAVING max(p.part_no) <> count(*)""",
        },
    }
)


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify every signature that lies beside a file: it is the bank's, and of this file."""
    keys, after = await list_public_keys(conn), _FIRST
    while rows := await conn.fetch(_SIGNED, after, _ROWS):
        for row in rows:
            key = {"customer_id": row["customer_id"], "file_id": row["file_id"]}
            try:
                proof = row["proof"].removeprefix(MARKER.decode()).removesuffix("\n")
                signed, _ = verify(proof, keys, DOCUMENT, SignedManifest)
            except Unproven as unproven:
                findings.add("report_file", key, str(unproven), certainty=Certainty.CHANGED)
            else:
                if signed.content.sha256 != row["sha256"]:
                    findings.add("report_file", key, "the bank signed another file", certainty=Certainty.CHANGED)
        after = rows[-1]["file_id"]
