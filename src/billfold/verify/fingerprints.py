"""Rows that no chain covers, compared with the fingerprints that chained rows hold of them.

A command that leaves such a row says in its outcome what the row's lasting part comes to: to whom
a wire goes, from which account an entry takes, whether a counterparty may be paid. Of commands of
one commit nothing tells which was the last: the row is what one of them said. Of the rows of dual
control the entries of the audit log say it, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.accounts import commands as account_commands
from billfold.accounts.agreements.types import AcceptanceRow
from billfold.accounts.counterparties import commands as counterparty_commands
from billfold.accounts.counterparties.types import CounterpartyRow, payee_from_row
from billfold.approvals.store.fingerprints import KEYS
from billfold.ledger.commands import commands
from billfold.payments.ach import commands as ach_commands
from billfold.payments.ach.types import AchEntry, PendingReturn
from billfold.payments.cards import commands as card_commands
from billfold.payments.cards.authorizations import commands as card_authorization_commands
from billfold.payments.cards.authorizations.types import AuthorizationRow, CardLimitsRow, CardPaymentRow
from billfold.payments.cards.cash_back import commands as cash_back_commands
from billfold.payments.cards.cash_back.types import CashBackRow
from billfold.payments.cards.types import CardOrderRow, CardRow
from billfold.payments.crypto.deposits import commands as crypto_deposit_commands
from billfold.payments.crypto.deposits.types import CryptoDepositRow
from billfold.payments.crypto.withdrawals import commands as withdrawal_commands
from billfold.payments.crypto.withdrawals.types import WithdrawalRow
from billfold.payments.deposits import commands as deposit_commands
from billfold.payments.suspense import commands as suspense_commands
from billfold.payments.suspense.types import SuspenseItem
from billfold.payments.wires import commands as wire_commands
from billfold.payments.wires.types import QueuedMessage, WireRow
from billfold.platform.checks import STATEMENT_TIMEOUT_SECONDS, Certainty, Findings, any_rows
from billfold.platform.database.rows import proof_of, stored_name

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection)
    from billfold.platform.database.rows import Row

LEAVING = (
    account_commands,
    ach_commands,
    card_commands,
    card_authorization_commands,
    cash_back_commands,
    crypto_deposit_commands,
    counterparty_commands,
    deposit_commands,
    suspense_commands,
    wire_commands,
    withdrawal_commands,
)
"""Loaded, so that `commands` knows all that leave a fingerprint."""
_BATCH_SIZE = 2_000
_CHANGED = "it differs from its last fingerprint"
_DELETED = "its fingerprint was left, and the row is missing"
_UNEXPLAINED = "no command left its fingerprint"
_QUERY_COLUMNS = frozenset({"said", "is_there", "needs_one", "of_customer", "of_id"})
"""What a query of ours adds to the columns of a row."""
_OWNER = """CASE c.kind WHEN 'AssignFromSuspense' THEN (c.outcome->>'owner_id')::uuid
                  ELSE c.customer_id END"""
"""The customer of the row. What the bank assigns from suspense belongs to its owner."""


class Log(NamedTuple):
    """Where fingerprints of a table are found, and the last one of every row there."""

    fingerprints: str
    last: str


_COMMANDS = Log(
    """command c, json_each_text(c.outcome->'proves'->'{table}') p
       WHERE c.accepted AND c.kind IN ({left_by})""",
    f"""SELECT customer_id, id, array_agg(proof) AS said
          FROM (SELECT {_OWNER} AS customer_id, p.key AS id, p.value AS proof,
                       rank() OVER (PARTITION BY {_OWNER}, p.key ORDER BY c.version DESC) AS place
                  FROM {{fingerprints}}) last
         WHERE place = 1 GROUP BY customer_id, id""",
)
_ENTRIES = Log(
    """audit_entry a, json_each_text(a.details->'proves'->'{table}') p
       WHERE a.outcome = 'SUCCESS' AND a.resource_type IN ({left_by})""",
    """SELECT DISTINCT ON (a.customer_id, p.key) a.customer_id, p.key AS id, ARRAY[p.value] AS said
         FROM {fingerprints}
        ORDER BY a.customer_id, p.key, a.entry_no DESC""",
)


class FingerprintedTable(NamedTuple):
    """A table: its key, who leaves its rows, what a row comes to, which rows need one, who says."""

    table: str
    key: tuple[str, ...]
    left_by: tuple[str, ...]
    proof_of: Callable[[Record], str]
    needs_one: str = "true"
    log: Log = _COMMANDS

    @property
    def fingerprints(self) -> str:
        """All that were left, as SQL after a FROM."""
        left_by = ", ".join(f"'{each}'" for each in self.left_by)
        return self.log.fingerprints.format(table=stored_name(self.table), left_by=left_by)


def _proved(
    row: type[Row], key: str, proof_of: Callable[[Record], str] | None = None, needs_one: str = "true"
) -> FingerprintedTable:
    """Rows of which the commands that leave them keep a fingerprint."""
    left_by = sorted(name for each in commands() if row in each.fingerprints for name in each.names())
    return FingerprintedTable(
        row.table, (key,), tuple(left_by), proof_of=proof_of or _proof_as(row), needs_one=needs_one
    )


def _proof_as(row: type[Any]) -> Callable[[Record], str]:
    fields = row.__struct_fields__
    return lambda record: str(row(**{name: record[name] for name in fields}).proof)


def _of_all(row: Record) -> str:
    return proof_of(row, set(row.keys()) - _QUERY_COLUMNS)


FINGERPRINTED_TABLES = (
    _proved(AchEntry, "ach_id"),
    # Returns of the bank itself were held in suspense, or move nothing.
    _proved(PendingReturn, "return_entry_id", needs_one="t.customer_id <> (SELECT bank_customer_id FROM bank)"),
    _proved(WireRow, "wire_id"),
    _proved(WithdrawalRow, "withdrawal_id"),
    # Recalls and their answers move no customer's money; nor do the bank's own returns.
    _proved(
        QueuedMessage,
        "message_id",
        needs_one="t.kind LIKE 'pacs.%' AND t.customer_id <> (SELECT bank_customer_id FROM bank)",
    ),
    _proved(CounterpartyRow, "counterparty_id", lambda row: payee_from_row(row).proof),
    _proved(SuspenseItem, "item_id"),
    # Earlier releases left none.
    _proved(AcceptanceRow, "acceptance_id", needs_one="t.accepted_by IS NOT NULL"),
    _proved(CardRow, "card_id"),
    _proved(CardOrderRow, "card_order_id"),
    _proved(AuthorizationRow, "authorization_id"),
    _proved(CardPaymentRow, "record_id"),
    _proved(CardLimitsRow, "card_id"),
    _proved(CryptoDepositRow, "deposit_id"),
    *(
        FingerprintedTable(
            table, key, ("transfer_request", "authorization_request", "customer"), proof_of=_of_all, log=_ENTRIES
        )
        for table, key in KEYS.items()
    ),
    *(
        FingerprintedTable(table, key, ("application",), proof_of=_of_all, log=_ENTRIES)
        for table, key in (
            ("application", ("application_id",)),
            ("application_move", ("move_id",)),
            ("related_party_application", ("application_id", "related_party_id")),
            ("application_invite", ("invite_id",)),
            ("awaited_team_member", ("member_id",)),
        )
    ),
    *(
        FingerprintedTable(table, key, ("agreements",), proof_of=_of_all, log=_ENTRIES)
        for table, key in (("agreement_version", ("version",)), ("agreement_document", ("version", "type")))
    ),
    _proved(CashBackRow, "cash_back_id"),
    FingerprintedTable("cash_back_rule", ("version",), ("cash_back_rule",), proof_of=_of_all, log=_ENTRIES),
    FingerprintedTable("tax_status", ("version",), ("tax_status",), proof_of=_of_all, log=_ENTRIES),
    FingerprintedTable("freeze_proposal", ("proposal_id",), ("freeze", "movement"), proof_of=_of_all, log=_ENTRIES),
    FingerprintedTable("sanctions_hit", ("hit_id",), ("sanctions_hit",), proof_of=_of_all, log=_ENTRIES),
)


async def check_fingerprints(
    conn: Connection, findings: Findings, tables: Iterable[FingerprintedTable] = FINGERPRINTED_TABLES
) -> None:
    """Compare every row of these tables with what was last said about it."""
    tables = tuple(tables)
    rows = [f"SELECT FROM {each.table} UNION ALL SELECT FROM {each.fingerprints}" for each in tables]
    for fingerprinted in compress(tables, await any_rows(conn, rows)):
        await _check(conn, findings, fingerprinted)


async def _check(conn: Connection, findings: Findings, fingerprinted: FingerprintedTable) -> None:
    cursor = await conn.cursor(_sql(fingerprinted), timeout=STATEMENT_TIMEOUT_SECONDS)
    while rows := await cursor.fetch(_BATCH_SIZE, timeout=STATEMENT_TIMEOUT_SECONDS):
        for row in rows:
            row_key = row["of_customer"], row["of_id"]
            message = _wrong(fingerprinted, row, row["said"])
            findings.checked[fingerprinted.table] += row["is_there"]
            if message is not None:
                own = zip(fingerprinted.key, row_key[1].split("/"), strict=False)
                key = {"customer_id": row_key[0]} | {name: _as_id(value) for name, value in own}
                certainty = Certainty.CHANGED if message == _CHANGED else Certainty.MISSING
                findings.add(fingerprinted.table, key, message, certainty=certainty)


def _wrong(fingerprinted: FingerprintedTable, row: Record, said: Sequence[str] | None) -> str | None:
    if not row["is_there"]:
        return _DELETED if any(said or ()) else None
    if said is None:
        return _UNEXPLAINED if row["needs_one"] else None
    return None if fingerprinted.proof_of(row) in said else _CHANGED


def _sql(fingerprinted: FingerprintedTable) -> str:
    own = " || '/' || ".join(f"t.{name}" for name in fingerprinted.key)
    own = own if len(fingerprinted.key) > 1 else f"{own}::text"
    return f"""
      WITH said AS ({fingerprinted.log.last.format(fingerprints=fingerprinted.fingerprints)})
      SELECT t.*, s.said, t.{fingerprinted.key[0]} IS NOT NULL AS is_there,
             {fingerprinted.needs_one} AS needs_one,
             coalesce(t.customer_id, s.customer_id) AS of_customer,
             coalesce({own}, s.id) AS of_id
        FROM {fingerprinted.table} t FULL JOIN said s ON s.customer_id = t.customer_id AND s.id = {own}
       ORDER BY of_customer, of_id
    """


def _as_id(value: str | None) -> object:
    try:
        return UUID(value)
    except (TypeError, ValueError):
        return int(value) if value is not None and value.isdecimal() else value
