"""The rows of the market against their log: by these dates and prices customers' money was invested."""

from datetime import date

from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings
from billfold.platform.database.connection import Connection
from billfold.treasury.market_log import FINGERPRINTS, KEYS, MARKET_LOG, RECORDED

_COMPARED = f"""
SELECT kind, key, number, found.fingerprint AS found, said.fingerprint AS said
  FROM ({FINGERPRINTS}) AS found FULL JOIN ({RECORDED}) AS said USING (kind, key)
 ORDER BY array_position($2::text[], kind), key
"""


async def check_market(conn: Connection, findings: Findings) -> None:
    """Compare every bill, auction, day of rates, override and day of closing prices with what was last recorded."""
    rows = await conn.fetch(_COMPARED, MARKET_LOG, list(KEYS), timeout=STATEMENT_TIMEOUT_SECONDS)
    if all(row["said"] is None for row in rows):
        key = {"customer_id": MARKET_LOG, "entry_no": 1}
        findings.add("audit_entry", key, "the log of the market is missing", certainty=Certainty.MISSING)
        return
    for row in rows:
        findings.checked[row["kind"]] += row["number"] or 0
        found, said = row["found"], row["said"]
        if found == said:
            continue
        if found is None:
            message, certainty = "its fingerprint was left, and the row is missing", Certainty.MISSING
        elif said is None:
            message, certainty = "no import left its fingerprint", Certainty.UNEXPECTED
        else:
            message, certainty = "it differs from its last fingerprint", Certainty.CHANGED
        findings.add(row["kind"], _key(row["kind"], row["key"]), message, certainty=certainty)


def _key(table: str, key: str) -> dict[str, object]:
    named = zip(KEYS[table], key.split("/"), strict=True)
    return {name: text if name == "cusip" else date.fromisoformat(text) for name, text in named}
