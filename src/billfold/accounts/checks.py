"""Checks of customers, pockets, portals and counterparties: each was created by a command and is in the directory.

Their rows change, so no chain covers them. It can be verified that a command created each, that the
directory refers to it, and that it does not contradict the log.
"""

from uuid import UUID

from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.customers.commands import CloseCustomer, EnrolCustomer, SetCustomerState
from billfold.accounts.pockets.commands import OpenPocket, SetPocketState, UpdatePocket
from billfold.accounts.portals.commands import OpenPortal, UpdatePortal
from billfold.accounts.portals.rules import WALLET_COLUMNS, account_number, network_address
from billfold.ledger.checks import TrackedTable, change_check, creation_checks, directory_checks
from billfold.platform.database.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Check, Findings, names_in_sql
from billfold.platform.database.connection import Connection

_PORTAL = TrackedTable("portal", "portal_id", (OpenPocket, OpenPortal), created_at="created_at")
_TABLES = (
    TrackedTable("customer", "customer_id", (EnrolCustomer,), created_at="opened_at"),
    TrackedTable("pocket", "pocket_id", (OpenPocket,), created_at="opened_at"),
    _PORTAL,
    TrackedTable("counterparty", "counterparty_id", (AddCounterparty,), created_at="created_at"),
)

_PORTAL_NAMES = (
    Check(
        "portal",
        "its routing number differs from the directory's",
        """SELECT p.customer_id, p.portal_id FROM portal p
            WHERE NOT EXISTS (SELECT 1 FROM directory d
                    WHERE d.kind = 'account'
                      AND d.value = p.routing_number || ':' || p.account_number)
              AND EXISTS (SELECT 1 FROM directory d
                    WHERE d.kind = 'account' AND d.object_id = p.portal_id
                      AND split_part(d.value, ':', 2) = p.account_number)""",
        certainty=Certainty.MISSING,
    ),
    *directory_checks(_PORTAL, "account", "n.routing_number || ':' || n.account_number"),
    *directory_checks(_PORTAL, "network", "n.network_address"),
    *directory_checks(_PORTAL, "wallet", "lower(n.wallet_address)"),
    Check(
        "directory",
        "the entry refers to no row of this customer",
        """SELECT kind, value FROM directory
            WHERE kind NOT IN ('customer', 'pocket', 'portal', 'account', 'network', 'wallet',
                               'counterparty', 'transfer', 'wire', 'card', 'card_order', 'crypto_withdrawal',
                               'reversal_request', 'card_dispute')""",
    ),
)

_STATE_CHECKS = (
    Check(
        "customer",
        "account_status is {found}, but its last command left another",
        f"""SELECT c.customer_id, c.account_status AS found FROM customer c
            WHERE c.account_status <> 'CLOSED' AND (c.account_status = 'FROZEN') IS DISTINCT FROM coalesce(
              (SELECT s.outcome->>'status' = 'FROZEN' FROM command s
                WHERE s.customer_id = c.customer_id AND s.accepted AND s.kind IN ({names_in_sql(SetCustomerState)})
                ORDER BY s.version DESC LIMIT 1), false)""",
    ),
    *(
        Check(
            "pocket",
            f"{column} is {{found}}, but its last command left another",
            f"""WITH reported AS (
                  SELECT customer_id, outcome->>'pocket_id' AS id, {says} AS says,
                         rank() OVER (PARTITION BY customer_id, outcome->>'pocket_id'
                                      ORDER BY version DESC) AS place
                    FROM command WHERE accepted AND kind IN ({names_in_sql(*kinds)}))
                SELECT p.customer_id, p.pocket_id, p.{column} AS found FROM pocket p
                 WHERE EXISTS (SELECT 1 FROM reported s
                         WHERE s.customer_id = p.customer_id AND s.id = p.pocket_id::text)
                   AND NOT EXISTS (SELECT 1 FROM reported s
                         WHERE s.customer_id = p.customer_id AND s.id = p.pocket_id::text
                           AND s.place = 1 AND s.says = p.{column}::text)
                   AND NOT EXISTS (SELECT 1 FROM command c
                         WHERE c.customer_id = p.customer_id AND c.accepted
                           AND c.kind IN ({names_in_sql(CloseCustomer)}) AND c.booked_at = p.closed_at
                           AND p.status = 'CLOSED')""",
        )
        for column, says, kinds in (
            ("status", "coalesce(outcome->>'status', 'OPEN')", (OpenPocket, UpdatePocket, SetPocketState)),
            ("real_time_yield", "outcome->>'real_time_yield'", (SetPocketState,)),
        )
    ),
    Check(
        "customer_feature",
        "the audit log says otherwise",
        """SELECT f.customer_id, f.feature FROM customer_feature f
            WHERE f.enabled IS DISTINCT FROM (
              SELECT e.action = 'feature.enabled' FROM audit_entry e
               WHERE e.customer_id = f.customer_id AND e.resource_type = 'feature' AND e.resource_id = f.feature
               ORDER BY e.entry_no DESC LIMIT 1)""",
    ),
    Check(
        "portal",
        "its Pocket is missing, or closed while it is open",
        """SELECT p.customer_id, p.portal_id
             FROM portal p LEFT JOIN pocket k USING (customer_id, pocket_id)
            WHERE k.pocket_id IS NULL OR (k.status = 'CLOSED' AND p.status <> 'CLOSED')""",
    ),
    Check(
        "portal",
        "it is closed, and no command closed it",
        f"""SELECT p.customer_id, p.portal_id
             FROM portal p JOIN pocket k USING (customer_id, pocket_id)
            WHERE p.status = 'CLOSED' AND k.status <> 'CLOSED' AND NOT EXISTS (
              SELECT 1 FROM command c
               WHERE c.customer_id = p.customer_id AND c.kind IN ({names_in_sql(UpdatePortal)}) AND c.accepted
                 AND c.outcome->>'portal_id' = p.portal_id::text)""",
    ),
    Check(
        "portal",
        "its Pocket differs from its creating command",
        f"""SELECT p.customer_id, p.portal_id FROM portal p JOIN command c
               ON c.customer_id = p.customer_id AND c.kind IN ({names_in_sql(OpenPocket)}) AND c.accepted
              AND c.outcome->>'portal_id' = p.portal_id::text
            WHERE c.outcome->>'pocket_id' <> p.pocket_id::text""",
    ),
    Check(
        "portal",
        "its address on a chain differs from its creating command",
        f"""SELECT p.customer_id, p.portal_id FROM portal p JOIN command c
               ON c.customer_id = p.customer_id AND c.kind IN ({names_in_sql(OpenPortal)}) AND c.accepted
              AND c.outcome->>'portal_id' = p.portal_id::text
            WHERE ({", ".join(f"p.{name}::text" for name in WALLET_COLUMNS)})
                  IS DISTINCT FROM ({", ".join(f"c.outcome->>'{name}'" for name in WALLET_COLUMNS)})""",
    ),
    Check(
        "counterparty",
        "its target differs from the portal of its address",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.type = 'on_us' AND NOT EXISTS (SELECT 1 FROM portal p
              WHERE p.customer_id = c.target_customer_id AND p.pocket_id = c.target_pocket_id
                AND p.network_address = c.account_number)""",
    ),
    Check(
        "hold",
        "no credit has its amount",
        """SELECT l.customer_id, l.hold_id FROM hold l
            WHERE l.status IS NULL AND NOT EXISTS (SELECT 1 FROM transaction a
              WHERE a.customer_id = l.customer_id AND a.pocket_id = l.pocket_id
                AND a.type = l.cause AND a.direction = 'CREDIT' AND a.amount = l.amount
                AND a.booked_at <= l.until)""",
    ),
    Check(
        "bank",
        "bank_customer_id is not the one customer with the role of the bank",
        """SELECT b.bank_customer_id FROM bank b
            WHERE NOT EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id = b.bank_customer_id AND c.role = 'house')
               OR EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id <> b.bank_customer_id AND c.role = 'house')""",
    ),
    Check(
        "counterparty",
        "it waits for a wire, and its expiry is not scheduled",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.status = 'PENDING' AND c.verification->>'type' = 'incoming_wire'
              AND NOT EXISTS (SELECT 1 FROM scheduled_job a WHERE a.kind = 'counterparty.expire'
                                 AND a.object_id = c.counterparty_id)""",
        certainty=Certainty.SUSPECT,
    ),
    Check(
        "counterparty",
        "account_number differs from its details",
        """SELECT customer_id, counterparty_id FROM counterparty
            WHERE account_number IS DISTINCT FROM
                  coalesce(details->>'account_number', details->>'identifier')""",
    ),
)

# Each part comes from its shards by itself.
_LISTED = """
WITH p AS MATERIALIZED (SELECT partner_id, customer_id, pocket_id, opened_at, status FROM pocket),
     l AS MATERIALIZED (SELECT partner_id, customer_id, pocket_id, opened_at, status FROM partner_pocket)
SELECT {0}.customer_id, {0}.pocket_id FROM {0} WHERE NOT EXISTS (SELECT 1 FROM {1} WHERE
  ({1}.partner_id, {1}.customer_id, {1}.pocket_id, {1}.opened_at, {1}.status)
= ({0}.partner_id, {0}.customer_id, {0}.pocket_id, {0}.opened_at, {0}.status))"""
_LISTED_OTHERWISE = "the list of its partner differs from the pocket"

CHECKS = (
    *(check for tracked in _TABLES for check in creation_checks(tracked)),
    *(check for tracked in _TABLES for check in directory_checks(tracked)),
    *_PORTAL_NAMES,
    Check("partner_pocket", _LISTED_OTHERWISE, _LISTED.format("p", "l"), certainty=Certainty.MISSING),
    Check("partner_pocket", _LISTED_OTHERWISE, _LISTED.format("l", "p")),
    *_STATE_CHECKS,
    change_check("customer", "closed_at"),
    change_check("pocket", "closed_at", "pocket_id"),
    change_check("portal", "updated_at", "portal_id"),
    change_check("counterparty", "updated_at", "counterparty_id"),
)
COUNTED = ("portal", "counterparty", "directory")


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Verify that account numbers and network addresses derive from the bank's seed and the portal's id."""
    seed: bytes = await conn.fetchval("SELECT seed FROM bank")
    cursor = await conn.cursor(
        "SELECT customer_id, portal_id, account_number, network_address FROM portal ORDER BY 1, 2",
        timeout=STATEMENT_TIMEOUT_SECONDS,
    )
    while rows := await cursor.fetch(2_000, timeout=STATEMENT_TIMEOUT_SECONDS):
        for customer_id, portal_id, account, network in rows:
            derived = account_number(seed, portal_id), network_address(seed, portal_id)
            if account is not None and derived != (account, network):
                key: dict[str, UUID] = {"customer_id": customer_id, "portal_id": portal_id}
                findings.add("portal", key, f"its numbers must be {derived}", certainty=Certainty.CHANGED)
                return
