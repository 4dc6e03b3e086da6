"""Bills that came from elsewhere or went there: each row is what its commands and trades say."""

from __future__ import annotations

from billfold.verify.query_check import Check
from billfold.verify.report import MISSING

TABLE = "security_transfer"
_BOOKED = """
SELECT customer_id, outcome->>'transfer_id' AS id, outcome->>'pocket_id' AS pocket_id,
       outcome->>'direction' AS direction, outcome->>'cusip' AS cusip,
       outcome->>'units' AS units, outcome->>'market_value' AS market_value,
       outcome->>'counterparty_name' AS name, outcome->>'counterparty_account' AS account,
       outcome->>'lots' AS lots, booked_at, outcome->>'status' AS status
  FROM command WHERE accepted AND kind IN ('ReceiveBills', 'DeliverBills')
"""
_COMPLETED = """
SELECT customer_id, outcome->>'transfer_id' AS id, outcome->>'status' AS status,
       outcome->>'reason' AS reason, booked_at
  FROM command WHERE accepted AND kind = 'EndDelivery'
"""
SECURITY_TRANSFER_CHECKS = (
    Check(
        "custody",
        TABLE,
        "it is there twice",
        """SELECT customer_id, transfer_id FROM security_transfer GROUP BY 1, 2
            HAVING count(*) > 1 ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "custody",
        TABLE,
        "the command that booked it said otherwise",
        f"""SELECT t.customer_id, t.transfer_id FROM security_transfer t LEFT JOIN ({_BOOKED}) b
              ON b.customer_id = t.customer_id AND b.id = t.transfer_id::text
             WHERE (t.pocket_id::text, t.direction, t.cusip, t.units::text, t.market_value::text,
                    t.counterparty_name, t.counterparty_account, t.lots::text, t.created_at)
                   IS DISTINCT FROM
                   (b.pocket_id, b.direction, b.cusip, b.units, b.market_value, b.name, b.account,
                    b.lots, b.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "custody",
        TABLE,
        "a command booked it, and it is not there",
        f"""SELECT b.customer_id, b.id AS transfer_id FROM ({_BOOKED}) b WHERE NOT EXISTS (
              SELECT 1 FROM security_transfer t
               WHERE t.customer_id = b.customer_id AND t.transfer_id::text = b.id)
             ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "custody",
        TABLE,
        "its last command said something else became of it",
        f"""SELECT t.customer_id, t.transfer_id FROM security_transfer t
              LEFT JOIN ({_BOOKED}) b ON b.customer_id = t.customer_id
                    AND b.id = t.transfer_id::text
              LEFT JOIN ({_COMPLETED}) e ON e.customer_id = t.customer_id
                    AND e.id = t.transfer_id::text
             WHERE (t.status, t.reason, t.ended_at) IS DISTINCT FROM
                   (coalesce(e.status, b.status), e.reason, e.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "custody",
        TABLE,
        "its trades move other bills",
        """SELECT t.customer_id, t.transfer_id FROM security_transfer t
             LEFT JOIN (
               SELECT customer_id, transfer_id,
                      coalesce(sum(units) FILTER (WHERE incoming), 0) AS came,
                      coalesce(sum(units) FILTER (WHERE NOT incoming), 0) AS went
                 FROM trade WHERE activity = 'EXTERNAL_SECURITY_TRANSFER'
                GROUP BY 1, 2) m USING (customer_id, transfer_id)
            WHERE (m.came, m.went) IS DISTINCT FROM
                  (CASE WHEN t.direction = 'IN' OR t.status = 'REJECTED' THEN t.units ELSE 0 END,
                   CASE WHEN t.direction = 'OUT' THEN t.units ELSE 0 END)
            ORDER BY 1, 2 LIMIT 100""",
    ),
)
