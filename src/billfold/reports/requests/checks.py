"""Reports: what was requested has its outcome, and what is completed its files, which show no more than they may."""

from typing import Final

from billfold.platform.checks import Certainty, declared, names_in_sql
from billfold.reports.requests.commands import FinishReport
from billfold.reports.requests.renderers.table import RENDERERS
from billfold.reports.requests.types import FINISHED_JOB

COUNTED = ("report_request", "report_format")
_REQUEST, _FORMAT = COUNTED
_MADE: Final = ", ".join(f"('{kind}', '{output_format}')" for kind, output_format in RENDERERS)
_OF_RANGES = "('TRADE_REPORT', 'SECURITY_PRICE_REPORT')"
_OF_FORMAT = "SELECT t.customer_id, t.report_id, t.output_format FROM report_format t"
_WITH_REQUEST = f"{_OF_FORMAT} JOIN report_request r USING (report_id)"
_WITH_FILE = f"{_OF_FORMAT} JOIN report_file f USING (file_id)"
_OF_REQUEST = "SELECT r.customer_id, r.report_request_id FROM report_request r"
_FINISHED = "r.status IN ('COMPLETED', 'FAILED')"
_OWN = "f.report_id = r.report_id AND f.batch_id = r.report_request_id"
CHECKS = declared(
    {
        (_REQUEST, Certainty.CHANGED): {
            "it is finished, and no event says so": f"""
                {_OF_REQUEST} WHERE {_FINISHED} AND NOT EXISTS (
                  SELECT 1 FROM command c WHERE c.customer_id = r.customer_id AND c.key = r.report_request_id
                     AND c.kind IN ({names_in_sql(FinishReport)}))
                   AND NOT EXISTS (SELECT 1 FROM scheduled_job j
                                    WHERE j.kind = '{FINISHED_JOB}' AND j.object_id = r.report_request_id)""",
            "it has a format in which no report of its type is made": f"""
                {_OF_REQUEST}, unnest(r.output_formats) AS wanted(name)
                 WHERE (r.type, wanted.name) NOT IN (VALUES {_MADE})""",
            "its parameters are not those of its type": f"""
                {_OF_REQUEST} WHERE (r.parameters->>'date' IS NULL) = (r.type NOT IN {_OF_RANGES})
                   OR (r.parameters->>'date_to' IS NULL) = (r.type IN {_OF_RANGES})
                   OR (r.entries_after IS NULL) <> (r.parameters->>'after_report_id' IS NULL)""",
            "it shows what was booked after it, or nowhere": f"""
                {_OF_REQUEST} WHERE r.entry_no > 0 AND NOT EXISTS (
                  SELECT 1 FROM journal_entry j WHERE j.customer_id = r.customer_id AND j.entry_no = r.entry_no
                     AND j.booked_at <= r.created_at)""",
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
            "it has the turns of somebody else": f"""
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
                                                                   AND t.output_format = wanted.output_format)""",
        },
    }
)
