"""Checks of cash back: every month follows from the customer's card payments and the rule in force."""

from billfold.ledger.checks import TrackedTable, creation_checks
from billfold.payments.cards.cash_back.rules import CASH_BACK_JOB, NEVER_PURCHASES, GiveCashBack
from billfold.platform.database.checks import Certainty, declared

_CASH = ", ".join(f"'{each}'" for each in NEVER_PURCHASES)
# The condition for a rule `r` to count a payment `p`.
_IS_COUNTED = f"p.merchant->>'category_code' <> ALL(r.excluded_categories || ARRAY[{_CASH}])"
_MONTH_OF = "to_char(({}) AT TIME ZONE 'America/New_York', 'YYYY-MM')"
_NET = "purchases - refunds"
# Rows with the deduction of each: the cards of a customer share it.
_CARRIED = f"""
SELECT *, -least(greatest({_NET}, 0), greatest(open - lesser, 0)) AS carried
  FROM (SELECT t.*, coalesce(sum(greatest({_NET}, 0)) OVER (
                 PARTITION BY customer_id, period ORDER BY {_NET}, card_id
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS lesser,
               coalesce(sum(greatest({_NET} + carried_in, 0) - ({_NET})) OVER (
                 PARTITION BY customer_id ORDER BY period
                 GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
               - sum(least({_NET}, 0)) OVER (PARTITION BY customer_id, period) AS open
          FROM cash_back t) t
"""
_EXPECTED = f"""
SELECT t.*, r.version, m.*,
       least(r.cap, (2 * greatest(m.paid - m.refunded + t.carried_in, 0) * r.basis_points + 10000) / 20000) AS earned
  FROM ({_CARRIED}) t JOIN customer c USING (customer_id)
  LEFT JOIN LATERAL (SELECT * FROM cash_back_rule r WHERE r.partner_id = c.partner_id AND r.from_month <= t.period
                      ORDER BY r.from_month DESC, r.version DESC LIMIT 1) r ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(p.amount) FILTER (WHERE p.kind IN ('PURCHASE', 'REPRESENTMENT')), 0)::bigint AS paid,
           coalesce(sum(p.amount) FILTER (WHERE p.kind IN ('REFUND', 'CHARGEBACK')), 0)::bigint AS refunded
      FROM card_payment p
     WHERE (p.customer_id, p.card_id) = (t.customer_id, t.card_id) AND {_IS_COUNTED}
       AND p.created_at >= (t.period || '-01')::timestamp AT TIME ZONE 'America/New_York'
       AND p.created_at < ((t.period || '-01')::timestamp + interval '1 month') AT TIME ZONE 'America/New_York') m
"""
_CREDITS = """
SELECT customer_id, entry_no, pocket_id, amount, (details->>'card_id')::uuid AS card_id, details->>'period' AS period
  FROM transaction WHERE type = 'CREDIT' AND details->>'period' IS NOT NULL
"""
_QUERIES = {
    ("cash_back", Certainty.DERIVED): {
        "it does not follow from its card's payments in the month and the rule in force": f"""
            SELECT x.customer_id, x.cash_back_id FROM ({_EXPECTED}) x
             WHERE (x.purchases, x.refunds, x.carried_in, x.rule_version, x.amount)
                   IS DISTINCT FROM (x.paid, x.refunded, x.carried, x.version, x.earned)""",
        "it differs from its credit": f"""
            SELECT t.customer_id, t.cash_back_id FROM cash_back t LEFT JOIN ({_CREDITS}) x USING (customer_id, entry_no)
             WHERE (t.pocket_id, t.card_id, t.period, t.amount)
                   IS DISTINCT FROM (x.pocket_id, x.card_id, x.period, x.amount) AND t.entry_no IS NOT NULL""",
    },
    ("cash_back", Certainty.MISSING): {
        "it was credited, and the row is missing": f"""
            SELECT x.customer_id, x.card_id, x.period FROM ({_CREDITS}) x WHERE NOT EXISTS (
              SELECT 1 FROM cash_back t WHERE (t.customer_id, t.entry_no) = (x.customer_id, x.entry_no))""",
        "its month was given, and the row is missing": f"""
            SELECT DISTINCT p.customer_id, p.card_id, n.period
              FROM card_payment p JOIN customer c USING (customer_id)
              JOIN scheduled_job j ON j.kind = '{CASH_BACK_JOB}' AND j.object_id = c.partner_id
              CROSS JOIN LATERAL (SELECT {_MONTH_OF.format("p.created_at")} AS period) n
              JOIN LATERAL (SELECT * FROM cash_back_rule r
                             WHERE r.partner_id = c.partner_id AND r.from_month <= n.period
                             ORDER BY r.from_month DESC, r.version DESC LIMIT 1) r ON true
             WHERE {_IS_COUNTED} AND n.period < {_MONTH_OF.format("j.due_at - interval '1 month'")}
               AND NOT EXISTS (SELECT 1 FROM cash_back t WHERE (t.customer_id, t.card_id, t.period)
                                                             = (p.customer_id, p.card_id, n.period))""",
    },
    ("cash_back_rule", Certainty.SUSPECT): {
        "no scheduled job applies it": f"""
            SELECT r.customer_id, r.version FROM cash_back_rule r WHERE NOT EXISTS (
              SELECT 1 FROM scheduled_job j WHERE j.kind = '{CASH_BACK_JOB}' AND j.object_id = r.partner_id)"""
    },
}
CHECKS = (
    *creation_checks(TrackedTable("cash_back", "cash_back_id", (GiveCashBack,), created_at="created_at")),
    *declared(_QUERIES),
)
COUNTED = ("cash_back", "cash_back_rule")
