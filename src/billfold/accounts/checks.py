"""Customers, pockets, portals, counterparties and transfers: born of a command, found by name.

Their rows change, so no chain covers them. What can be proved is that a command made each, that
the directory leads to it, and that it does not contradict the log. Each check is one query that
yields the first bad rows, or none. Ids inside JSON are compared as text: they may be damaged too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.commands import EnrolCustomer, OpenPocket, OpenPortal
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.portals.rules import account_number, network_address
from billfold.ledger.commands import Command
from billfold.payments.on_us.commands import TransferOnUs
from billfold.payments.wires.checks import WIRE_COMMANDS, WIRE_TOLD, WIRES
from billfold.verify.query_check import Query, names_in_sql
from billfold.verify.report import MISSING, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_UUID_LENGTH = 36


class Noun(NamedTuple):
    """A thing with an id: its table, the commands that make it, and when it says it was made."""

    name: str
    id_column: str
    made_by: tuple[type[Command], ...]
    made_at: str

    @property
    def key(self) -> tuple[str, ...]:
        """Its primary key."""
        return ("customer_id",) if self.name == "customer" else ("customer_id", self.id_column)


NOUNS = (
    Noun("customer", "customer_id", (EnrolCustomer,), "opened_at"),
    Noun("pocket", "pocket_id", (OpenPocket,), "opened_at"),
    Noun("portal", "portal_id", (OpenPocket, OpenPortal), "created_at"),
    Noun("counterparty", "counterparty_id", (AddCounterparty,), "created_at"),
    Noun("transfer", "transfer_id", (TransferOnUs,), "created_at"),
    Noun("wire", "wire_id", WIRE_COMMANDS, "created_at"),
)


async def check_nouns(conn: Connection, found: Findings, seed: bytes) -> None:
    """Run every check; the first bad rows of each are looked at."""
    await run_queries(conn, found, queries())
    await _check_numbers(conn, found, seed)
    for name in ("portal", "counterparty", "transfer", "wire", "directory"):
        found.checked[name] = await conn.fetchval(
            f"SELECT count(*) FROM {name}",
            timeout=PATIENCE_SECONDS,
        )


async def run_queries(conn: Connection, found: Findings, queries: Iterable[Query]) -> None:
    """Report every row that these queries yield; how many each does is asked of all in one go."""
    asked = tuple(queries)
    counted = ", ".join(f"(SELECT count(*) FROM ({each.sql}) rows)" for each in asked)
    patience = PATIENCE_SECONDS * len(asked)
    yields = await conn.fetchrow(f"SELECT {counted}", timeout=patience)
    for query in compress(asked, yields or ()):
        for row in await conn.fetch(query.sql, timeout=PATIENCE_SECONDS):
            key = {
                name: _as_id(value) if name.endswith("_id") else value
                for name, value in row.items()
            }
            found.add(query.check, query.table, key, query.wrong, query.sureness)


def _as_id(value: object) -> object:
    """The id that a command's outcome names, when it is one."""
    try:
        return UUID(value) if isinstance(value, str) and len(value) == _UUID_LENGTH else value
    except ValueError:
        return value


def queries() -> Iterator[Query]:
    """Every check, the ones that name a row most surely first."""
    for noun in NOUNS:
        yield _twice(noun.name, ", ".join(noun.key))
    yield _twice("directory", "kind, value")
    for noun in NOUNS:
        yield from _births(noun)
    for noun in NOUNS:
        yield from _entries(noun)
    yield from _NAMES
    yield from _STATES
    yield from _TRANSFERS
    yield from WIRES


def _twice(table: str, key: str) -> Query:
    return Query(
        "births", table, "it is there twice",
        f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1 ORDER BY {key} LIMIT 100",
        MISSING,
    )  # fmt: skip


def _births(noun: Noun) -> Iterator[Query]:
    """A thing without the command that made it, or the other way round."""
    kinds = names_in_sql(*noun.made_by)
    told, told_id = "command", f"outcome->>'{noun.id_column}'"
    if noun.name == "wire":
        told, told_id = f"{WIRE_TOLD} t", "wire_id"
    born = f"""
      (SELECT customer_id, {told_id} AS id, min(booked_at) AS at FROM {told}
        WHERE accepted AND kind IN ({kinds}) AND {told_id} IS NOT NULL
        GROUP BY 1, 2)"""
    check = "commands" if noun.name in {"transfer", "wire"} else "births"
    key = ", ".join(f"n.{column}" for column in noun.key)
    yield Query(
        check, noun.name, "no command made it, or not then",
        f"""SELECT {key} FROM {noun.name} n LEFT JOIN {born} b
              ON b.customer_id = n.customer_id AND b.id = n.{noun.id_column}::text
             WHERE b.at IS DISTINCT FROM n.{noun.made_at} ORDER BY {key} LIMIT 100""",
        MISSING,
    )  # fmt: skip
    made = "" if noun.name == "customer" else f", b.id AS {noun.id_column}"
    yield Query(
        check, noun.name, "a command made it, and it is not there",
        f"""SELECT b.customer_id{made} FROM {born} b LEFT JOIN {noun.name} n
              ON n.customer_id = b.customer_id AND n.{noun.id_column}::text = b.id
             WHERE n.customer_id IS NULL ORDER BY 1 LIMIT 100""",
        MISSING,
    )  # fmt: skip


def _entries(noun: Noun) -> Iterator[Query]:
    """Every thing has its entry under its id, and every entry leads to its thing."""
    yield Query(
        "directory", "directory", "the entry leads to nothing of this customer",
        f"""SELECT d.kind, d.value FROM directory d
             WHERE d.kind = '{noun.name}' AND (d.value <> d.object_id::text OR NOT EXISTS (
               SELECT 1 FROM {noun.name} n
                WHERE n.customer_id = d.customer_id AND n.{noun.id_column} = d.object_id))
             ORDER BY 1, 2 LIMIT 100""",
    )  # fmt: skip
    yield Query(
        "directory", "directory", "the entry is missing",
        f"""SELECT '{noun.name}' AS kind, n.{noun.id_column}::text AS value FROM {noun.name} n
             WHERE NOT EXISTS (SELECT 1 FROM directory d
               WHERE d.kind = '{noun.name}' AND d.value = n.{noun.id_column}::text)
             ORDER BY 2 LIMIT 100""",
        MISSING,
    )  # fmt: skip


_NAMES = (
    Query(
        "directory", "portal", "its routing number is not under its account number",
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
    Query(
        "directory", "directory", "the entry leads to nothing of this customer",
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
    Query(
        "directory", "directory", "the entry is missing",
        """SELECT kind, value FROM (
             SELECT 'account' AS kind, routing_number || ':' || account_number AS value FROM portal
             UNION ALL SELECT 'network', network_address FROM portal) n
            WHERE value IS NOT NULL AND NOT EXISTS (
              SELECT 1 FROM directory d WHERE d.kind = n.kind AND d.value = n.value)
            ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
)  # fmt: skip

_STATES = (
    *(
        Query(
            "states", "pocket", "its last command said it was something else",
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
            ("status", "coalesce(outcome->>'status', 'OPEN')",
             "'OpenPocket', 'UpdatePocket', 'SetPocketState'"),
            ("real_time_yield", "outcome->>'real_time_yield'", "'SetPocketState'"),
        )
    ),
    Query(
        "states", "portal", "no portal is in such a state",
        """SELECT customer_id, portal_id FROM portal WHERE status NOT IN ('OPEN', 'CLOSED')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "states", "portal", "its pocket is not there, or closed while it is open",
        """SELECT p.customer_id, p.portal_id
             FROM portal p LEFT JOIN pocket k USING (customer_id, pocket_id)
            WHERE k.pocket_id IS NULL OR (k.status = 'CLOSED' AND p.status <> 'CLOSED')
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "states", "portal", "no command closed it",
        """SELECT p.customer_id, p.portal_id
             FROM portal p JOIN pocket k USING (customer_id, pocket_id)
            WHERE p.status = 'CLOSED' AND k.status <> 'CLOSED' AND NOT EXISTS (
              SELECT 1 FROM command c
               WHERE c.customer_id = p.customer_id AND c.kind = 'UpdatePortal' AND c.accepted
                 AND c.outcome->>'portal_id' = p.portal_id::text)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "states", "portal", "its pocket is not the one it was made for",
        """SELECT p.customer_id, p.portal_id FROM portal p JOIN command c
               ON c.customer_id = p.customer_id AND c.kind = 'OpenPocket' AND c.accepted
              AND c.outcome->>'portal_id' = p.portal_id::text
            WHERE c.outcome->>'pocket_id' <> p.pocket_id::text ORDER BY 1, 2 LIMIT 100""",
    ),
    *(
        Query(
            "states", name, "no command changed it then",
            f"""SELECT n.customer_id{key} FROM {name} n
                 WHERE n.{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM command c
                   WHERE c.customer_id = n.customer_id AND c.accepted AND c.booked_at = n.{column})
                 ORDER BY 1 LIMIT 100""",
        )
        for name, key, column in (
            ("customer", "", "closed_at"), ("pocket", ", n.pocket_id", "closed_at"),
            ("portal", ", n.portal_id", "updated_at"),
            ("counterparty", ", n.counterparty_id", "updated_at"),
            ("wire", ", n.wire_id", "updated_at"), ("ach_entry", ", n.ach_id", "updated_at"),
        )
    ),
    Query(
        "states", "counterparty", "it does not lead to the pocket behind its address",
        """SELECT c.customer_id, c.counterparty_id FROM counterparty c
            WHERE c.type = 'on_us' AND NOT EXISTS (SELECT 1 FROM portal p
              WHERE p.customer_id = c.target_customer_id AND p.pocket_id = c.target_pocket_id
                AND p.network_address = c.account_number)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "states", "lien", "no ACH credit of this amount came in",
        """SELECT l.customer_id, l.lien_id FROM lien l
            WHERE NOT EXISTS (SELECT 1 FROM activity a
              WHERE a.customer_id = l.customer_id AND a.pocket_id = l.pocket_id
                AND a.type = l.cause AND a.direction = 'CREDIT' AND a.amount = l.amount
                AND a.booked_at <= l.until)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "states", "bank", "the house is not the customer it names",
        """SELECT b.house_customer_id FROM bank b
            WHERE NOT EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id = b.house_customer_id AND c.role = 'house')
               OR EXISTS (SELECT 1 FROM customer c
              WHERE c.customer_id <> b.house_customer_id AND c.role = 'house')""",
    ),
)  # fmt: skip

_TRANSFERS = (
    Query(
        "commands", "transfer", "its last command said something else became of it",
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
    Query(
        "transfers", "transfer", "it belongs to another partner than its payer",
        """SELECT t.customer_id, t.transfer_id FROM transfer t JOIN customer c USING (customer_id)
            WHERE t.partner_id IS DISTINCT FROM c.partner_id ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "transfers", "transfer", "its pocket is not the payer's",
        """SELECT t.customer_id, t.transfer_id FROM transfer t WHERE NOT EXISTS (
             SELECT 1 FROM pocket p
              WHERE p.customer_id = t.customer_id AND p.pocket_id = t.from_pocket_id)
            ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "transfers", "transfer", "what moved is not what it says",
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
    Query(
        "transfers", "activity", "its transfer is not there",
        """SELECT a.customer_id, a.pocket_id, a.journal_no, a.leg_no FROM activity a
             LEFT JOIN transfer t ON t.transfer_id::text = a.details->>'on_us_transfer_id'
            WHERE a.type = 'ON_US' AND t.transfer_id IS NULL ORDER BY 1, 3, 4 LIMIT 100""",
    ),
)  # fmt: skip


async def _check_numbers(conn: Connection, found: Findings, seed: bytes) -> None:
    """Account numbers and network addresses are drawn from the seed and the portal's id."""
    cursor = await conn.cursor(
        "SELECT customer_id, portal_id, account_number, network_address FROM portal ORDER BY 1, 2",
        timeout=PATIENCE_SECONDS,
    )
    while rows := await cursor.fetch(2_000, timeout=PATIENCE_SECONDS):
        for customer_id, portal_id, account, network in rows:
            drawn = account_number(seed, portal_id), network_address(seed, portal_id)
            if account is not None and drawn != (account, network):
                key: dict[str, UUID] = {"customer_id": customer_id, "portal_id": portal_id}
                found.add("directory", "portal", key, f"its numbers must be {drawn}", MISSING - 1)
                return
