"""Checks of files to and from the rails: each is archived unchanged, and agrees with its messages."""

from billfold.data_keys.keys import DataKey
from billfold.payments.files.store import open_content
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, declared
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvariantError

_FILES = {
    ("rail_file", Certainty.CHANGED): {
        "sha256 is not the hash of its content": """
            SELECT file_id FROM rail_file WHERE sha256 IS DISTINCT FROM sha256(content)"""
    },
    ("rail_file", Certainty.DERIVED): {
        "its report differs from its state or name": """
            SELECT file_id FROM rail_file
             WHERE direction = 'IN' AND done_at IS NOT NULL
               AND (report->>'state', report->>'file') IS DISTINCT FROM (state, name)"""
    },
    ("rail_file", Certainty.SUSPECT): {
        "its name or report differs from its messages": """
            SELECT f.file_id FROM rail_file f
              LEFT JOIN (SELECT file_id, min(imad) AS first, count(*) AS messages
                           FROM wire_message WHERE file_id IS NOT NULL GROUP BY file_id) m
                     USING (file_id)
             WHERE f.rail = 'WIRE' AND f.direction = 'OUT'
               AND (f.name IS DISTINCT FROM 'fedwire-' || m.first || '.xml'
                    OR f.done_at IS NOT NULL AND f.report->>'messages' <> m.messages::text)""",
        "its state contradicts the arrivals recorded of it": """
            SELECT f.file_id FROM rail_file f
             WHERE f.rail = 'WIRE' AND f.direction = 'IN' AND f.done_at IS NOT NULL
               AND f.report->'closed' IS NULL
               AND (f.state = 'PROCESSED' AND f.report->>'messages' <> '0') <> EXISTS (
                     SELECT 1 FROM received_wire_message a WHERE a.file_id = f.file_id)""",
    },
    ("rail_file", Certainty.MISSING): {
        "messages refer to it, and it is missing": """
            SELECT file_id FROM (SELECT file_id, count(*) AS times FROM received_wire_message GROUP BY 1
                                 UNION ALL
                                 SELECT file_id, count(*) FROM wire_message
                                  WHERE file_id IS NOT NULL GROUP BY 1
                                 UNION ALL
                                 SELECT file_id, count(*) FROM ach_entry
                                  WHERE way = 'RECEIVING' GROUP BY 1) n
             WHERE NOT EXISTS (SELECT 1 FROM rail_file f WHERE f.file_id = n.file_id)
               AND times > 1"""
    },
    ("received_wire_message", Certainty.MISSING): {
        "a wire arrived with it, and it is missing": """
            SELECT 'uetr:' || w.uetr AS number FROM wire w
             WHERE w.direction = 'INCOMING' AND w.wire_type = 'PAYMENT' AND w.message IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM received_wire_message a WHERE a.number = 'uetr:' || w.uetr)"""
    },
    ("received_wire_message", Certainty.DERIVED): {
        "its file reports more messages than were recorded": """
            SELECT f.file_id FROM rail_file f JOIN (
              SELECT file_id, count(*) AS numbers FROM received_wire_message
               WHERE number NOT LIKE 'uetr:%' GROUP BY 1) a USING (file_id)
             WHERE f.state = 'PROCESSED' AND f.report->'closed' IS NULL
               AND f.report->>'messages' <> a.numbers::text"""
    },
    ("received_wire_message", Certainty.SUSPECT): {
        "its file is missing or was refused": """
            SELECT a.number FROM received_wire_message a WHERE NOT EXISTS (
              SELECT 1 FROM rail_file f WHERE f.file_id = a.file_id AND f.rail = 'WIRE'
                 AND f.direction = 'IN' AND f.state <> 'REFUSED')"""
    },
}
CHECKS = tuple(declared(_FILES))
COUNTED = ("rail_file",)
_SEALED = "SELECT file_id, content, digest FROM rail_file ORDER BY file_id"


async def check_opened(conn: Connection, findings: Findings, bank_key: DataKey) -> None:
    """Decrypt every file, and compare its content with the digest by which it is recognized."""
    async for row in conn.cursor(_SEALED, prefetch=1, timeout=STATEMENT_TIMEOUT_SECONDS):
        message = "its digest is not that of its content"
        try:
            if bank_key.digest(open_content(bank_key, row["file_id"], row["content"])) == row["digest"]:
                continue
        except InvariantError:
            message = "its content does not open: it was altered, or moved from another row"
        findings.add("rail_file", {"file_id": row["file_id"]}, message, certainty=Certainty.CHANGED)
