"""Customers, pockets, portals, counterparties and transfers: born of a command, found by name.

Their rows change, so no chain covers them. What can be proved is that a command made each, that
the directory leads to it, and that it does not contradict the log. Each check is one query that
yields the first bad rows, or none. Ids inside JSON are compared as text: they may be damaged too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.commands import EnrolCustomer, OpenPocket, OpenPortal
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.portals.rules import account_number, network_address
from billfold.ledger.commands import Command
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.wires.checks import WIRE_CHECKS, WIRE_COMMANDS, WIRE_OUTCOMES
from billfold.verify.query_check import Check, names_in_sql, run_checks
from billfold.verify.report import MISSING, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection


class TrackedTable(NamedTuple):
    """A thing with an id: its table, the commands that make it, and when it says it was made."""

    name: str
    id_column: str
    made_by: tuple[type[Command], ...]
    made_at: str

    @property
    def key(self) -> tuple[str, ...]:
        """Its primary key."""
        return ("customer_id",) if self.name == "customer" else ("customer_id", self.id_column)


TRACKED_TABLES = (
    TrackedTable("customer", "customer_id", (EnrolCustomer,), "opened_at"),
    TrackedTable("pocket", "pocket_id", (OpenPocket,), "opened_at"),
    TrackedTable("portal", "portal_id", (OpenPocket, OpenPortal), "created_at"),
    TrackedTable("counterparty", "counterparty_id", (AddCounterparty,), "created_at"),
    TrackedTable("transfer", "transfer_id", (TransferOnUs,), "created_at"),
    TrackedTable("wire", "wire_id", WIRE_COMMANDS, "created_at"),
)


async def check_tracked_tables(conn: Connection, findings: Findings, seed: bytes) -> None:
    """Run every check; the first bad rows of each are looked at."""
    await run_checks(conn, findings, queries())
    await _check_account_numbers(conn, findings, seed)
    for name in ("portal", "counterparty", "transfer", "wire", "directory"):
        findings.checked[name] = await conn.fetchval(f"SELECT count(*) FROM {name}", timeout=STATEMENT_TIMEOUT_SECONDS)


def queries() -> Iterator[Check]:
    """Every check, the ones that name a row most surely first."""
    for tracked in TRACKED_TABLES:
        yield _duplicate_check(tracked.name, ", ".join(tracked.key))
    yield _duplicate_check("directory", "kind, value")
    for tracked in TRACKED_TABLES:
        yield from _creation_checks(tracked)
    for tracked in TRACKED_TABLES:
        yield from _directory_checks(tracked)
    yield from _PORTAL_NAMES
    yield from _STATE_CHECKS
    yield from _TRANSFER_CHECKS
    yield from WIRE_CHECKS


def _duplicate_check(table: str, key: str) -> Check:
    return Check(
        "births",
        table,
        "it is there twice",
        f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1 ORDER BY {key} LIMIT 100",
        MISSING,
    )


def _creation_checks(tracked: TrackedTable) -> Iterator[Check]:
    """A thing without the command that made it, or the other way round."""
    kinds = names_in_sql(*tracked.made_by)
    told, id_expression = "command", f"outcome->>'{tracked.id_column}'"
    if tracked.name == "wire":
        told, id_expression = f"{WIRE_OUTCOMES} t", "wire_id"
    creations = f"""
      (SELECT customer_id, {id_expression} AS id, min(booked_at) AS at FROM {told}
        WHERE accepted AND kind IN ({kinds}) AND {id_expression} IS NOT NULL
        GROUP BY 1, 2)"""
    check = "commands" if tracked.name in {"transfer", "wire"} else "births"
    key = ", ".join(f"n.{column}" for column in tracked.key)
    yield Check(
        check,
        tracked.name,
        "no command made it, or not then",
        f"""SELECT {key} FROM {tracked.name} n LEFT JOIN {creations} b
              ON b.customer_id = n.customer_id AND b.id = n.{tracked.id_column}::text
             WHERE b.at IS DISTINCT FROM n.{tracked.made_at} ORDER BY {key} LIMIT 100""",
        MISSING,
    )
    id_column_sql = "" if tracked.name == "customer" else f", b.id AS {tracked.id_column}"
    yield Check(
        check,
        tracked.name,
        "a command made it, and it is not there",
        f"""SELECT b.customer_id{id_column_sql} FROM {creations} b LEFT JOIN {tracked.name} n
              ON n.customer_id = b.customer_id AND n.{tracked.id_column}::text = b.id
             WHERE n.customer_id IS NULL ORDER BY 1 LIMIT 100""",
        MISSING,
    )


def _directory_checks(tracked: TrackedTable) -> Iterator[Check]:
    """Every thing has its entry under its id, and every entry leads to its thing."""
    yield Check(
        "directory",
        "directory",
        "the entry leads to nothing of this customer",
        f"""SELECT d.kind, d.value FROM directory d
             WHERE d.kind = '{tracked.name}' AND (d.value <> d.object_id::text OR NOT EXISTS (
               SELECT 1 FROM {tracked.name} n
                WHERE n.customer_id = d.customer_id AND n.{tracked.id_column} = d.object_id))
             ORDER BY 1, 2 LIMIT 100""",
    )
    yield Check(
        "directory",
        "directory",
        "the entry is missing",
        f"""SELECT '{tracked.name}' AS kind, n.{tracked.id_column}::text AS value FROM {tracked.name} n
             WHERE NOT EXISTS (SELECT 1 FROM directory d
               WHERE d.kind = '{tracked.name}' AND d.value = n.{tracked.id_column}::text)
             ORDER BY 2 LIMIT 100""",
        MISSING,
    )


_PORTAL_NAMES = (
    Check(
        "directory",
        "portal",
        "its routing number is not under its account number",
        """SELECT p.customer_id, p.portal_id FROM portal p
            WHERE NOT EXISTS (SELECT 1 FROM directory d
                    WHERE d.kind = 'account'
                      AND d.value = p.routing_number || ':' || p.account_number)
              AND EXISTS (SELECT 1 FROM directory d
                    WHERE d.kind = 'account' AND d.object_id = p.portal_id
                      AND split_part(d.value, ':', 2) = p.account_number)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "directory",
        "directory",
        "the entry leads to nothing of this customer",
        """SELECT d.kind, d.value FROM directory d
            WHERE d.kind = 'account' AND NOT EXISTS (SELECT 1 FROM portal p
                    WHERE p.customer_id = d.customer_id AND p.portal_id = d.object_id
                      AND d.value = p.routing_number || ':' || p.account_number)
               OR d.kind = 'network' AND NOT EXISTS (SELECT 1 FROM portal p
                    WHERE p.customer_id = d.customer_id AND p.portal_id = d.object_id
                      AND d.value = p.network_address)
               OR d.kind NOT IN ('customer', 'pocket', 'portal', 'account', 'network',
                                 'counterparty', 'transfer', 'wire')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "directory",
        "directory",
        "the entry is missing",
        """SELECT kind, value FROM (
             SELECT 'account' AS kind, routing_number || ':' || account_number AS value FROM portal
             UNION ALL SELECT 'network', network_address FROM portal) n
            WHERE value IS NOT NULL AND NOT EXISTS (
              SELECT 1 FROM directory d WHERE d.kind = n.kind AND d.value = n.value)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
)

_STATE_CHECKS = (
    *(
        Check(
            "states",
            "pocket",
            "its last command said it was something else",
            f"""WITH said AS (
                  SELECT customer_id, outcome->>'pocket_id' AS id, {says} AS says,
                         rank() OVER (PARTITION BY customer_id, outcome->>'pocket_id'
                                      ORDER BY version DESC) AS place
                    FROM command WHERE accepted AND kind IN ({kinds}))
                SELECT p.customer_id, p.pocket_id FROM pocket p
                 WHERE EXISTS (SELECT 1 FROM said s
                         WHERE s.customer_id = p.customer_id AND s.id = p.pocket_id::text)
                   AND NOT EXISTS (SELECT 1 FROM said s
                         WHERE s.customer_id = p.customer_id AND s.id = p.pocket_id::text
                           AND s.place = 1 AND s.says = p.{column}::text)
                   AND NOT EXISTS (SELECT 1 FROM command c
                         WHERE c.customer_id = p.customer_id AND c.accepted
                           AND c.kind = 'CloseCustomer' AND c.booked_at = p.closed_at
                           AND p.status = 'CLOSED')
                 ORDER BY 1, 2 LIMIT 100""",
        )
        for column, says, kinds in (
            ("status", "coalesce(outcome->>'status', 'OPEN')", "'OpenPocket', 'UpdatePocket', 'SetPocketState'"),
            ("real_time_yield", "outcome->>'real_time_yield'", "'SetPocketState'"),
        )
    ),
    Check(
        "states",
        "portal",
        "no portal is in such a state",
        """SELECT customer_id, portal_id FROM portal WHERE status NOT IN ('OPEN', 'CLOSED')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "states",
        "portal",
        "its pocket is not there, or closed while it is open",
        """SELECT p.customer_id, p.portal_id
             FROM portal p LEFT JOIN pocket k USING (customer_id, pocket_id)
            WHERE k.pocket_id IS NULL OR (k.status = 'CLOSED' AND p.status <> 'CLOSED')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "states",
        "portal",
        "no command closed it",
        """SELECT p.customer_id, p.portal_id
             FROM portal p JOIN pocket k USING (customer_id, pocket_id)
            WHERE p.status = 'CLOSED' AND k.status <> 'CLOSED' AND NOT EXISTS (
              SELECT 1 FROM command c
               WHERE c.customer_id = p.customer_id AND c.kind = 'UpdatePortal' AND c.accepted
                 AND c.outcome->>'portal_id' = p.portal_id::text)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "states",
        "portal",
        "its pocket is not the one it was made for",
        """SELECT p.customer_id, p.portal_id FROM portal p JOIN command c
               ON c.customer_id = p.customer_id AND c.kind = 'OpenPocket' AND c.accepted
              AND c.outcome->>'portal_id' = p.portal_id::text
            WHERE c.outcome->>'pocket_id' <> p.pocket_id::text ORDER BY 1, 2 LIMIT 100""",
    ),
    *(
        Check(
            "states",
            name,
            "no command changed it then",
            f"""SELECT n.customer_id{key} FROM {name} n
                 WHERE n.{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM command c
                   WHERE c.customer_id = n.customer_id AND c.accepted AND c.booked_at = n.{column})
                 ORDER BY 1 LIMIT 100""",
        )
        for name, key, column in (
            ("customer", "", "closed_at"),
            ("pocket", ", n.pocket_id", "closed_at"),
            ("portal", ", n.portal_id", "updated_at"),
            ("counterparty", ", n.counterparty_id", "updated_at"),
            ("wire", ", n.wire_id", "updated_at"),
            ("ach_entry", ", n.ach_id", "updated_at"),
        )
    ),
    Check(
        "states",
        "counterparty",
        "it does not lead to the pocket behind its address",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.type = 'on_us' AND NOT EXISTS (SELECT 1 FROM portal p
              WHERE p.customer_id = c.target_customer_id AND p.pocket_id = c.target_pocket_id
                AND p.network_address = c.account_number)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "states",
        "lien",
        "no ACH credit of this amount came in",
        """SELECT l.customer_id, l.lien_id FROM lien l
            WHERE NOT EXISTS (SELECT 1 FROM activity a
              WHERE a.customer_id = l.customer_id AND a.pocket_id = l.pocket_id
                AND a.type = l.cause AND a.direction = 'CREDIT' AND a.amount = l.amount
                AND a.booked_at <= l.until)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "states",
        "bank",
        "the house is not the customer it names",
        """SELECT b.house_customer_id FROM bank b
            WHERE NOT EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id = b.house_customer_id AND c.role = 'house')
               OR EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id <> b.house_customer_id AND c.role = 'house')""",
    ),
)

_TRANSFER_CHECKS = (
    Check(
        "commands",
        "transfer",
        "its last command said something else became of it",
        """SELECT t.customer_id, t.transfer_id FROM transfer t JOIN (
             SELECT DISTINCT ON (customer_id, id) *
               FROM (SELECT customer_id, outcome->>'transfer_id' AS id, version,
                            outcome->>'status' AS status, outcome->>'reason' AS reason,
                            outcome->>'amount' AS amount
                       FROM command WHERE accepted AND kind = 'TransferOnUs') c
              ORDER BY customer_id, id, version DESC) c
               ON c.customer_id = t.customer_id AND c.id = t.transfer_id::text
            WHERE (t.status, t.reason, t.amount::text)
                  IS DISTINCT FROM (c.status, c.reason, c.amount)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "transfers",
        "transfer",
        "it belongs to another partner than its payer",
        """SELECT t.customer_id, t.transfer_id FROM transfer t JOIN customer c USING (customer_id)
            WHERE t.partner_id IS DISTINCT FROM c.partner_id ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "transfers",
        "transfer",
        "its pocket is not the payer's",
        """SELECT t.customer_id, t.transfer_id FROM transfer t WHERE NOT EXISTS (
             SELECT 1 FROM pocket p
              WHERE p.customer_id = t.customer_id AND p.pocket_id = t.from_pocket_id)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "transfers",
        "transfer",
        "what moved is not what it says",
        """WITH moved AS (
             SELECT details->>'on_us_transfer_id' AS id,
                    details->>'on_us_transfer_type' AS type, direction = 'DEBIT' AS paid,
                    customer_id, pocket_id, amount
               FROM activity WHERE type = 'ON_US'
             UNION ALL
             SELECT transfer_id::text, 'INTERNAL_REALLOCATION', NOT incoming, customer_id,
                    pocket_id, sum(notional)::bigint
               FROM trade WHERE transfer_id IS NOT NULL
              GROUP BY transfer_id, incoming, customer_id, pocket_id)
           SELECT t.customer_id, t.transfer_id FROM transfer t
             LEFT JOIN moved p ON p.id = t.transfer_id::text AND p.paid
             LEFT JOIN moved r ON r.id = t.transfer_id::text AND NOT r.paid
            WHERE CASE WHEN t.status = 'COMPLETED'
                  THEN (p.customer_id, p.pocket_id, p.amount, p.type, r.pocket_id, r.amount, r.type)
                       IS DISTINCT FROM (t.customer_id, t.from_pocket_id, t.amount, t.type,
                                         t.to_pocket_id, t.amount, t.type)
                  ELSE p.id IS NOT NULL OR r.id IS NOT NULL END
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "transfers",
        "activity",
        "its transfer is not there",
        """SELECT a.customer_id, a.pocket_id, a.journal_no, a.leg_no FROM activity a
             LEFT JOIN transfer t ON t.transfer_id::text = a.details->>'on_us_transfer_id'
            WHERE a.type = 'ON_US' AND t.transfer_id IS NULL ORDER BY 1, 3, 4 LIMIT 100""",
    ),
)


async def _check_account_numbers(conn: Connection, findings: Findings, seed: bytes) -> None:
    """Account numbers and network addresses are drawn from the seed and the portal's id."""
    cursor = await conn.cursor(
        "SELECT customer_id, portal_id, account_number, network_address FROM portal ORDER BY 1, 2",
        timeout=STATEMENT_TIMEOUT_SECONDS,
    )
    while rows := await cursor.fetch(2_000, timeout=STATEMENT_TIMEOUT_SECONDS):
        for customer_id, portal_id, account, network in rows:
            derived = account_number(seed, portal_id), network_address(seed, portal_id)
            if account is not None and derived != (account, network):
                key: dict[str, UUID] = {"customer_id": customer_id, "portal_id": portal_id}
                findings.add("directory", "portal", key, f"its numbers must be {derived}", MISSING - 1)
                return
