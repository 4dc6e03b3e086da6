"""Tax forms: of a finished year every Pocket that sold or redeemed bills has its forms."""

from billfold.platform.checks import Certainty, declared


def _missing(form: str, counts: str) -> str:
    return f"""
        SELECT DISTINCT t.customer_id, t.pocket_id, '{form}' AS type, r.year::text AS key FROM tax_run r JOIN trade t
            ON t.traded_at >= make_timestamptz(r.year, 1, 1, 0, 0, 0, 'America/New_York')
           AND t.traded_at < make_timestamptz(r.year + 1, 1, 1, 0, 0, 0, 'America/New_York') AND {counts}
          JOIN customer c USING (customer_id)
         WHERE c.role IN ('customer', 'partner') AND NOT EXISTS (
           SELECT 1 FROM statement s WHERE (s.customer_id, s.pocket_id, s.type, s.key, s.version)
                                         = (t.customer_id, t.pocket_id, '{form}', r.year::text, 1))"""


CHECKS = declared(
    {
        ("statement", Certainty.MISSING): {
            "bills were sold, and Form 1099-B is missing": _missing("1099-B", "t.activity = 'SELL'"),
            "bills paid interest, and Form 1099-INT is missing": _missing(
                "1099-INT", "t.activity = 'MATURITY' AND t.notional > t.tax_basis"
            ),
        }
    }
)
