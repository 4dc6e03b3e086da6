"""Checks that rows, files and signatures of reports and statements agree.

Files have all of their parts and are signed by the bank; report requests have their outcome, and show no more than
they may; each monthly statement begins where the last one ended; every tax form of a finished year exists.
"""

from typing import Final

from billfold.data_keys.keys import SEALED_BYTES
from billfold.platform.database.checks import Certainty, Findings, declared, names_in_sql
from billfold.platform.database.connection import Connection
from billfold.reports.proofs import signatures, signed_files
from billfold.reports.proofs.signatures import DOCUMENT, SignedManifest, Unproven, verify
from billfold.reports.requests.renderers import RENDERERS
from billfold.reports.requests.types import FINISHED_JOB
from billfold.reports.rules import FinishReport
from billfold.reports.statements.store import is_of_month

_ROWS: Final = 500
_SIGNED = """
SELECT customer_id, file_id, sha256, proof FROM report_file WHERE file_id > $1 AND proof IS NOT NULL
 ORDER BY file_id LIMIT $2
"""
_FIRST: Final = "00000000-0000-0000-0000-000000000000"
_FILES = {
    ("report_file", Certainty.CHANGED): {
        "its parts together are not as long as it is": f"""
            SELECT t.customer_id, t.file_id FROM report_file t JOIN (
                SELECT file_id, sum(size_bytes) - count(*) * {SEALED_BYTES} AS size FROM report_file_part GROUP BY 1
              ) p USING (file_id) WHERE p.size <> t.size_bytes"""
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


_REQUEST, _FORMAT = "report_request", "report_format"
_MADE: Final = ", ".join(f"('{kind}', '{output_format}')" for kind, output_format in RENDERERS)
_OF_RANGES = "('TRADE_REPORT', 'SECURITY_PRICE_REPORT')"
_OF_FORMAT = "SELECT t.customer_id, t.report_id, t.output_format FROM report_format t"
_WITH_REQUEST = f"{_OF_FORMAT} JOIN report_request r USING (report_id)"
_WITH_FILE = f"{_OF_FORMAT} JOIN report_file f USING (file_id)"
_OF_REQUEST = "SELECT r.customer_id, r.report_request_id FROM report_request r"
_FINISHED = "r.status IN ('COMPLETED', 'FAILED')"
_OWN = "f.report_id = r.report_id AND f.batch_id = r.report_request_id"
_REQUESTS = {
    (_REQUEST, Certainty.CHANGED): {
        "it is finished, but has no event": f"""
            {_OF_REQUEST} LEFT JOIN (
              SELECT DISTINCT customer_id, key FROM command WHERE kind IN ({names_in_sql(FinishReport)})) c
                ON c.customer_id = r.customer_id AND c.key = r.report_request_id
             WHERE {_FINISHED} AND c.key IS NULL
               AND NOT EXISTS (SELECT 1 FROM scheduled_job j
                                WHERE j.kind = '{FINISHED_JOB}' AND j.object_id = r.report_request_id)""",
        "its type of report is not available in its format": f"""
            {_OF_REQUEST}, unnest(r.output_formats) AS wanted(name)
             WHERE (r.type, wanted.name) NOT IN (VALUES {_MADE})""",
        "its parameters are not those of its type": f"""
            {_OF_REQUEST} WHERE (r.parameters->>'date' IS NULL) = (r.type NOT IN {_OF_RANGES})
               OR (r.parameters->>'date_to' IS NULL) = (r.type IN {_OF_RANGES})
               OR (r.entries_after IS NULL) <> (r.parameters->>'after_report_id' IS NULL)""",
        "its last journal entry is missing or was booked after it": f"""
            {_OF_REQUEST} LEFT JOIN (
              SELECT customer_id, entry_no, booked_at FROM journal_entry
               WHERE (customer_id, entry_no) IN (SELECT customer_id, entry_no FROM report_request)) j
                ON j.customer_id = r.customer_id AND j.entry_no = r.entry_no
               AND j.booked_at <= coalesce((r.parameters->>'as_of')::timestamptz, r.created_at)
             WHERE r.entry_no > 0 AND j.entry_no IS NULL""",
        "it is of another partner than its customer": f"""
            {_OF_REQUEST} JOIN customer c USING (customer_id) WHERE c.partner_id <> r.partner_id""",
    },
    (_REQUEST, Certainty.DERIVED): {
        "it is completed, and a format of it is not": f"""
            {_OF_REQUEST} WHERE r.status = 'COMPLETED' AND EXISTS (
              SELECT 1 FROM report_format f WHERE {_OWN} AND f.status <> 'COMPLETED')""",
        "it failed, and no format of it did for that reason": f"""
            {_OF_REQUEST} WHERE r.status = 'FAILED' AND NOT EXISTS (
              SELECT 1 FROM report_format f WHERE {_OWN} AND f.failure_reason = r.failure_reason)""",
        "every format of it is finished, and it is not": f"""
            {_OF_REQUEST} WHERE NOT {_FINISHED} AND NOT EXISTS (
              SELECT 1 FROM report_format f WHERE {_OWN} AND f.status IN ('PENDING', 'PROCESSING'))""",
        "a file of it was made for another instant": f"""
            {_OF_REQUEST} JOIN report_format t USING (report_id) JOIN report_file f USING (file_id)
             WHERE f.created_at <> r.created_at""",
    },
    (_FORMAT, Certainty.CHANGED): {
        "it is of another customer than its request": f"{_WITH_REQUEST} WHERE t.customer_id <> r.customer_id",
        "no report of its type is made in it": f"""
            {_WITH_REQUEST} WHERE (r.type, t.output_format) NOT IN (VALUES {_MADE})""",
        "it was requested with its report, and is in another batch": f"""
            {_WITH_REQUEST} WHERE t.output_format = ANY(r.output_formats) AND t.batch_id <> r.report_request_id""",
        "its tenant is neither its customer nor its partner": f"""
            {_WITH_REQUEST} WHERE t.tenant_id NOT IN (r.customer_id, r.partner_id)""",
        "it is completed, and not all of it is done": f"""
            {_OF_FORMAT} WHERE t.status = 'COMPLETED' AND t.progress < 100""",
        "its file is another customer's": f"{_WITH_FILE} WHERE f.customer_id <> t.customer_id",
    },
    (_FORMAT, Certainty.MISSING): {
        "it was requested, and the row is missing": """
            SELECT r.customer_id, r.report_id, wanted.output_format
              FROM report_request r, unnest(r.output_formats) AS wanted(output_format)
             WHERE NOT EXISTS (SELECT 1 FROM report_format t WHERE t.report_id = r.report_id
                                                               AND t.output_format = wanted.output_format)"""
    },
}


_SAME = "(n.customer_id, n.pocket_id, n.type, n.key) = (t.customer_id, t.pocket_id, t.type, t.key)"
_IS_LATEST = f"NOT EXISTS (SELECT 1 FROM statement n WHERE {_SAME} AND n.version > t.version)"
_MONTH_AFTER = "to_char((l.key || '-01')::date + interval '1 month', 'YYYY-MM')"
# For a tax form, the year it covers; otherwise the month; in New York time.
_ENDS_ON = """CASE length(t.key) WHEN 4 THEN make_timestamp(t.key::int + 1, 1, 1, 0, 0, 0)
                                ELSE (t.key || '-01')::timestamp + interval '1 month' END"""
_ENDS_AT = f"{_ENDS_ON} AT TIME ZONE 'America/New_York'"
_STATEMENTS = {
    ("statement", Certainty.CHANGED): {
        "it does not cover what was booked by the end of its period, and no more": f"""
            SELECT t.customer_id, t.statement_id FROM statement t
             WHERE t.entry_no > 0 AND NOT EXISTS (
               SELECT 1 FROM journal_entry j
                WHERE j.customer_id = t.customer_id AND j.entry_no = t.entry_no AND j.booked_at < {_ENDS_AT})
                OR EXISTS (SELECT 1 FROM journal_entry j WHERE j.customer_id = t.customer_id
                              AND j.entry_no = t.entry_no + 1 AND j.booked_at < {_ENDS_AT})""",
        "its file was made at another time": """
            SELECT t.customer_id, t.statement_id FROM statement t JOIN report_file f ON f.file_id = t.statement_id
             WHERE f.created_at <> t.created_at""",
    },
    ("statement", Certainty.DERIVED): {
        "it does not begin where the last one ended": f"""
            SELECT t.customer_id, t.statement_id FROM statement t JOIN statement l
                ON (l.customer_id, l.pocket_id, l.type) = (t.customer_id, t.pocket_id, t.type)
               AND length(l.key) = 7 AND {_MONTH_AFTER} = t.key
             WHERE {_IS_LATEST} AND {_IS_LATEST.replace("t.", "l.")} AND l.closing <> t.opening""",
        "its Pocket was opened in its month, and was not empty then": """
            SELECT t.customer_id, t.statement_id FROM statement t JOIN pocket p USING (customer_id, pocket_id)
             WHERE t.opening <> 0 AND length(t.key) = 7
               AND p.opened_at >= (t.key || '-01')::timestamp AT TIME ZONE 'America/New_York'""",
        "a bank account was not at zero": """
            SELECT t.customer_id, t.statement_id FROM statement t
             WHERE t.type = 'BANK' AND (t.opening <> 0 OR t.closing <> 0)""",
        "its file is another customer's": """
            SELECT t.customer_id, t.statement_id FROM statement t JOIN report_file f ON f.file_id = t.statement_id
             WHERE f.customer_id <> t.customer_id""",
    },
    ("statement", Certainty.MISSING): {
        "an earlier version is missing": f"""
            SELECT t.customer_id, t.pocket_id, t.type, t.key FROM statement t WHERE t.version > 1 AND NOT EXISTS (
              SELECT 1 FROM statement n WHERE {_SAME} AND n.version = t.version - 1)""",
        "its month is finished, and the row is missing": f"""
            SELECT p.customer_id, p.pocket_id, t.type, r.key FROM statement_run r
              CROSS JOIN LATERAL (
                SELECT (r.key || '-01')::timestamp AT TIME ZONE 'America/New_York' AS starts_at,
                       ((r.key || '-01')::timestamp + interval '1 month') AT TIME ZONE 'America/New_York' AS ends_at) m
              JOIN pocket p ON {is_of_month("m.starts_at", "m.ends_at", "r.key")}
              CROSS JOIN unnest(ARRAY['BANK', 'BROKERAGE']) AS t(type)
             WHERE NOT EXISTS (SELECT 1 FROM statement s WHERE (s.customer_id, s.pocket_id, s.type, s.key, s.version)
                                                             = (p.customer_id, p.pocket_id, t.type, r.key, 1))""",
    },
}


def _missing(form: str, counts: str) -> str:
    return f"""
        SELECT DISTINCT t.customer_id, t.pocket_id, '{form}' AS type, r.year::text AS key FROM tax_run r JOIN trade t
            ON t.traded_at >= make_timestamptz(r.year, 1, 1, 0, 0, 0, 'America/New_York')
           AND t.traded_at < make_timestamptz(r.year + 1, 1, 1, 0, 0, 0, 'America/New_York') AND {counts}
          JOIN customer c USING (customer_id)
         WHERE c.role IN ('customer', 'partner') AND NOT EXISTS (
           SELECT 1 FROM statement s WHERE (s.customer_id, s.pocket_id, s.type, s.key, s.version)
                                         = (t.customer_id, t.pocket_id, '{form}', r.year::text, 1))"""


_TAX_FORMS = {
    ("statement", Certainty.MISSING): {
        "bills were sold, and Form 1099-B is missing": _missing("1099-B", "t.activity = 'SELL'"),
        "bills paid interest, and Form 1099-INT is missing": _missing(
            "1099-INT", "t.activity = 'MATURITY' AND t.notional > t.tax_basis"
        ),
    }
}
CHECKS = tuple(declared(_FILES, _REQUESTS, _STATEMENTS, _TAX_FORMS))
COUNTED = ("report_file", "report_file_part", _REQUEST, _FORMAT, "statement")


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify every signature in a proof file: it is the bank's, and of this file."""
    keys, after = await signatures.list_public_keys(conn), _FIRST
    while rows := await conn.fetch(_SIGNED, after, _ROWS):
        for row in rows:
            key = {"customer_id": row["customer_id"], "file_id": row["file_id"]}
            try:
                proof = row["proof"].removeprefix(signed_files.MARKER.decode()).removesuffix("\n")
                signed, _ = verify(proof, keys, DOCUMENT, SignedManifest)
            except Unproven as unproven:
                findings.add("report_file", key, str(unproven), certainty=Certainty.CHANGED)
            else:
                if signed.content.sha256 != row["sha256"]:
                    findings.add("report_file", key, "the bank signed another file", certainty=Certainty.CHANGED)
        after = rows[-1]["file_id"]
