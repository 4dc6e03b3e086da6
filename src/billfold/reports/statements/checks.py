"""Monthly statements: each begins where the last one ended, and every version of one is there."""

from __future__ import annotations

from billfold.platform.checks import Certainty, declared

_SAME = "(n.customer_id, n.pocket_id, n.type, n.key) = (t.customer_id, t.pocket_id, t.type, t.key)"
_IS_LATEST = f"NOT EXISTS (SELECT 1 FROM statement n WHERE {_SAME} AND n.version > t.version)"
_MONTH_AFTER = "to_char((l.key || '-01')::date + interval '1 month', 'YYYY-MM')"
_QUERIES = {
    ("statement", Certainty.DERIVED): {
        "it does not begin where the last one ended": f"""
            SELECT t.customer_id, t.statement_id FROM statement t JOIN statement l
                ON (l.customer_id, l.pocket_id, l.type) = (t.customer_id, t.pocket_id, t.type)
               AND length(l.key) = 7 AND {_MONTH_AFTER} = t.key
             WHERE {_IS_LATEST} AND {_IS_LATEST.replace("t.", "l.")} AND l.closing <> t.opening""",
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
        "its month is finished, and the row is missing": """
            SELECT p.customer_id, p.pocket_id, t.type, r.key FROM statement_run r
              CROSS JOIN LATERAL (SELECT (r.key || '-01')::timestamp AS first) m
              JOIN pocket p
                ON p.opened_at < (m.first + interval '1 month') AT TIME ZONE 'America/New_York'
               AND (p.closed_at IS NULL OR p.closed_at >= m.first AT TIME ZONE 'America/New_York')
              CROSS JOIN unnest(ARRAY['BANK', 'BROKERAGE']) AS t(type)
             WHERE NOT EXISTS (SELECT 1 FROM statement s WHERE (s.customer_id, s.pocket_id, s.type, s.key, s.version)
                                                             = (p.customer_id, p.pocket_id, t.type, r.key, 1))""",
    },
}
CHECKS = declared(_QUERIES)
