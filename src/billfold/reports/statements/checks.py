"""Monthly statements: each begins where the last one ended, and every version of one is there."""

from billfold.platform.checks import Certainty, declared
from billfold.reports.statements.store import is_of_month

_SAME = "(n.customer_id, n.pocket_id, n.type, n.key) = (t.customer_id, t.pocket_id, t.type, t.key)"
_IS_LATEST = f"NOT EXISTS (SELECT 1 FROM statement n WHERE {_SAME} AND n.version > t.version)"
_MONTH_AFTER = "to_char((l.key || '-01')::date + interval '1 month', 'YYYY-MM')"
# Of a tax form the year that it is about, else the month; in New York.
_ENDS_ON = """CASE length(t.key) WHEN 4 THEN make_timestamp(t.key::int + 1, 1, 1, 0, 0, 0)
                                ELSE (t.key || '-01')::timestamp + interval '1 month' END"""
_ENDS_AT = f"{_ENDS_ON} AT TIME ZONE 'America/New_York'"
_QUERIES = {
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
CHECKS = declared(_QUERIES)
COUNTED = ("statement",)
