"""Rows of counterparties, their sealed details, and notifications of changes.

A sealed counterparty has `account_key` next to its account: the number as machines write it, by which rules compare.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.names import NameMatch
from billfold.accounts.counterparties.rules import identifiers, manage, verification_kinds
from billfold.accounts.counterparties.types import CounterpartyRow, Payee, payee_from_row
from billfold.accounts.notes.store import has_terms
from billfold.accounts.portals.store import FIRST_NETWORK_ADDRESS
from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.data_keys.notes import open_note
from billfold.events.notifications.notify import notify
from billfold.ledger.bank import Bank
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Seen
from billfold.ledger.engine.pending_command import PendingCommand
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault, is_sealed_text
from billfold.platform.database.business_clock import clock_of_row
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.former_rows import as_was
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.pool import uuid_array
from billfold.platform.database.rows import References, Table
from billfold.platform.ids import command_id

_FAILED_NAMES = """
SELECT count(*) FROM counterparty WHERE customer_id = $1 AND created_at >= ($2 || ' UTC')::timestamptz
   AND verification #>> '{name_check,checked_on}' = $2 AND verification #>> '{name_check,outcome}' <> $3
"""
_FIELDS: Final = {
    "account_number": PartyField.ACCOUNT,
    "identifier": PartyField.ACCOUNT,
    "wallet_address": PartyField.ACCOUNT,
    "address": PartyField.ADDRESS,
    "wire_instructions": PartyField.TEXT,
}


def seal_details(data_key: DataKey, kind: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as stored. An address of this bank stays in plain text, because payments need it."""
    if kind == "on_us":
        return dict(details)
    sealed = {name: field.seal(data_key, _text(details[name])) for name, field in _FIELDS.items() if name in details}
    number = details.get("identifier") or details.get("account_number")
    if number is not None:
        sealed[verification_kinds.ACCOUNT_KEY] = PartyField.ACCOUNT.seal(data_key, identifiers.compact(number))
    return {**details, **sealed}


def open_details(data_key: DataKey | None, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as given; None for those that were destroyed with their key."""
    opened = {name: value for name, value in details.items() if name != verification_kinds.ACCOUNT_KEY}
    for name in _FIELDS.keys() & opened.keys():
        if isinstance(opened[name], str):
            opened[name] = _FIELDS[name].open(data_key, opened[name])
    if isinstance(address := opened.get("address"), str):
        opened["address"] = msgspec.json.decode(address)
    return opened


def open_order(data_key: DataKey | None, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an `AddCounterparty` with its details and its holder's address in plain text."""
    address = order.get("holder_address")
    shown = {name: value for name, value in order.items() if name != "attached"}
    return {
        **shown,
        **open_note(data_key, order.get("attached", {})),
        "details": open_details(data_key, order["details"]),
        "holder_address": address and PartyField.ADDRESS.open(data_key, address),
    }


def are_sealed(kind: str, details: Mapping[str, Any]) -> bool:
    """Return whether stored details are sealed: no account number has the form of a sealed text."""
    accounts = [details[name] for name, field in _FIELDS.items() if field is PartyField.ACCOUNT and name in details]
    return kind == "on_us" or any(map(is_sealed_text, accounts))


async def count_failed_names(conn: Db, customer_id: UUID, on: date) -> int:
    """Return how many names given that day did not match, as `failed_name_checks` counts them."""
    return int(await conn.fetchval(_FAILED_NAMES, customer_id, on.isoformat(), NameMatch.MATCH))


async def open_counterparties(bank: Bank, rows: Sequence[CounterpartyRow]) -> list[CounterpartyRow]:
    """Return counterparties with their details in plain text."""
    ring = await bank.ports[DataKeys].load(bank.pool, {row.customer_id for row in rows})
    return [_decrypt_counterparty(row, ring.get(row.customer_id)) for row in rows]


async def open_payees(bank: Bank, payees: Sequence[tuple[UUID, Payee]]) -> list[tuple[UUID, Payee]]:
    """Return the payees of customers with their details in plain text."""
    ring = await bank.ports[DataKeys].load(bank.pool, {customer_id for customer_id, _ in payees})
    return [
        (customer_id, msgspec.structs.replace(payee, details=open_details(ring.get(customer_id), payee.details)))
        for customer_id, payee in payees
    ]


def _decrypt_counterparty(row: CounterpartyRow, data_key: DataKey | None) -> CounterpartyRow:
    details = open_details(data_key, msgspec.json.decode(row.details))
    number = details.get("account_number") or details.get("identifier")
    return msgspec.structs.replace(row, details=msgspec.json.encode(details).decode(), account_number=number)


def _text(value: str | Mapping[str, str]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def notify_changes(conn: Connection, batch: Sequence[PendingCommand], *, vault: Vault) -> None:
    """Notify the team of each counterparty whose status a command of this batch changed, in its transaction."""
    for job in batch:
        for each in (job.outcome or {}).get("counterparties", ()):
            await notify(
                conn,
                vault,
                job.customers[0],
                kind="COUNTERPARTY_STATUS_CHANGED",
                title="A counterparty changed",
                description=each["said"],
                metadata={"counterparty_id": each["counterparty_id"]},
                now=wall_now(),
            )


_counterparties = Table(CounterpartyRow)
_PAYEES = """
SELECT customer_id, counterparty_id, type, status, counterparty_name, verification, details,
       target_customer_id, target_pocket_id
  FROM counterparty
"""
_FIND_PAYEES = f"""{_PAYEES}
 WHERE customer_id = ANY((SELECT $1::text::uuid[])::uuid[])
   AND counterparty_id = ANY((SELECT $2::text::uuid[])::uuid[])
"""
_PAYEES_OF_CUSTOMERS = f"{_PAYEES} WHERE customer_id = ANY($1::uuid[])"
_STOPPED = """
(EXISTS (SELECT 1 FROM customer payer
          WHERE payer.customer_id = {table}.customer_id AND payer.account_status = 'FROZEN')
 OR EXISTS (SELECT 1 FROM counterparty stopped
             WHERE stopped.customer_id = {table}.customer_id AND stopped.counterparty_id = {table}.counterparty_id
               AND coalesce(stopped.verification->>'sanctions', 'CLEAR') <> 'CLEAR'))
"""
_AWAITING_REVIEW = f"""
WITH c AS MATERIALIZED (
  SELECT {_counterparties.columns()}, written_no FROM counterparty
   WHERE status = 'PENDING' AND verification->>'type' = 'supporting_documents')
SELECT {_counterparties.columns()} FROM c
 WHERE NOT EXISTS (SELECT 1 FROM document d
                    WHERE d.customer_id = c.customer_id
                      AND c.verification::jsonb->'document_ids' ? d.document_id::text
                      AND d.status IN ('PENDING_UPLOAD', 'INVALID'))
 ORDER BY created_at, written_no LIMIT $1"""
_PAYER_ADDRESS = FIRST_NETWORK_ADDRESS.format(customer="c.customer_id", pocket="c.pocket_id")
_PAYEE_ADDRESS = """
(SELECT network_address FROM portal p
  WHERE p.customer_id = c.target_customer_id AND p.pocket_id = c.target_pocket_id
    AND p.network_address = c.account_number AND p.status = 'OPEN' AND 'ON_US' = ANY(p.payment_rails) LIMIT 1)
"""
# Sub-selects keep the plan independent of the ids, so it is made once and not for each batch.
_PEERS = f"""
WITH c AS MATERIALIZED (
  SELECT k.nth - 1 AS nth, k.pocket_id, o.customer_id, o.counterparty_id, o.type, o.status, o.counterparty_name,
         o.verification, o.details, o.account_number, o.target_customer_id, o.target_pocket_id
    FROM unnest((SELECT $1::text::uuid[]), (SELECT $2::text::uuid[]), (SELECT $3::text::uuid[])) WITH ORDINALITY
         AS k(customer_id, pocket_id, counterparty_id, nth)
    JOIN counterparty o USING (customer_id, counterparty_id)
), h AS MATERIALIZED (
  SELECT customer_id, chain FROM ledger_head
   WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM c UNION SELECT target_customer_id FROM c))
)
SELECT c.nth, c.customer_id, c.counterparty_id, c.type, c.status, c.counterparty_name, c.verification,
       c.details, c.target_customer_id, c.target_pocket_id, {_PAYER_ADDRESS} AS payer_address,
       {_PAYEE_ADDRESS} AS payee_address, payer.chain AS payer_chain, payee.chain AS payee_chain,
       clock.business_anchor, clock.wall_anchor, clock.frozen
  FROM c LEFT JOIN h payer ON payer.customer_id = c.customer_id
  LEFT JOIN h payee ON payee.customer_id = c.target_customer_id
  LEFT JOIN clock ON true
"""
_FIND_EXCHANGED = "SELECT access FROM linking_exchange WHERE customer_id = $1 AND exchange_id = $2"
_KEEP_EXCHANGED = """
INSERT INTO linking_exchange (customer_id, exchange_id, access, exchanged_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
"""
# The command that sent the deposits is found by its key, and its entries by its outcome.
_DEPOSITS_SENT = """
SELECT coalesce(bool_and(coalesce(e.status IN ('IN_TRANSIT', 'PROCESSED', 'FAILED'), false)), false)
  FROM command c CROSS JOIN json_array_elements_text(c.outcome->'ach_ids') AS a(ach_id)
  LEFT JOIN ach_entry e ON e.customer_id = c.customer_id AND e.ach_id = a.ach_id::uuid
 WHERE c.customer_id = $1 AND c.command_id = $2 AND c.accepted
"""
_PAYEE_NAMES_MAX = 10_000
_PAYEE_NAMES = f"""
SELECT counterparty_id, concat(display_name || ' / ', coalesce(
         counterparty_name->>'business_name',
         concat_ws(' ', counterparty_name->>'first_name', counterparty_name->>'last_name')))
  FROM counterparty WHERE customer_id = $1 AND status <> 'UNLINKED'
 ORDER BY created_at DESC, written_no DESC LIMIT {_PAYEE_NAMES_MAX}
"""
_OF_IDS = f"""{_counterparties.select} c
 WHERE c.customer_id = $1 AND c.counterparty_id = ANY($2::uuid[])
   AND ($3::text IS NULL OR c.type = $3) AND ($4::text IS NULL OR c.status = $4)
 ORDER BY array_position($2::uuid[], c.counterparty_id)
"""
_FORGET_EXCHANGED = "DELETE FROM linking_exchange WHERE customer_id = $1 AND exchange_id = $2"
COUNTERPARTIES, COUNTERPARTIES_THEN = (
    KeysetList(
        f"""{selected} customer_id = $1
   AND ($2::text[] IS NULL OR type = ANY($2)) AND ($3::text[] IS NULL OR {status} = ANY($3))
   AND {has_terms("counterparty", "counterparty_id", 4)} AND {{page}}""",
        _counterparties.read,
        **BY_CREATION,
    )
    for selected, status in (
        (f"SELECT {_counterparties.columns()}, written_no FROM counterparty WHERE", "status"),
        (f"{_counterparties.select_as_of('$5', 'written_no')} AND", f"{as_was('counterparty')}.status"),
    )
)
"""Counterparties of a customer, of some types and statuses or of all, and by terms of notes, newest first."""
get_counterparty = _counterparties.get

_decode = msgspec.json.Decoder().decode


async def list_payee_names(conn: Db, customer_id: UUID) -> list[tuple[UUID, str]]:
    """Return the ids and the names of the newest counterparties that are linked, behind the name that the team gave."""
    return [(key, name) for key, name in await conn.fetch(_PAYEE_NAMES, customer_id)]


async def list_by_ids(
    conn: Db, owner: UUID, ids: Sequence[UUID], *, kind: str | None = None, status: str | None = None
) -> list[CounterpartyRow]:
    """Return counterparties of a customer in the order of their ids, of one type and status or of all."""
    return await _counterparties.all(conn, _OF_IDS, owner, list(ids), kind, status)


PeerKey = tuple[UUID, UUID, UUID]
"""A customer, the paying Pocket, and the paid counterparty."""


class PeerRow(NamedTuple):
    """A counterparty of any type, its target, and the addresses of both Pockets.

    The payer's is its first open one; the payee's is the counterparty's own, None if its portal is
    closed or does not accept on-us payments.
    """

    type: str
    status: str
    customer_id: UUID | None
    pocket_id: UUID | None
    payer_address: str | None
    payee_address: str | None
    seen: Seen
    """The counterparty as rules see it."""


def document_ids_of(row: CounterpartyRow) -> list[UUID]:
    """Return the ids of the documents of a counterparty's verification."""
    return [UUID(each) for each in _decode(row.verification).get("document_ids", ())]


def is_stopped(table: str) -> str:
    """Return the SQL condition that payments, rows of a table, must not be sent.

    Sanctions screening stopped their counterparty (`check_sanctions`), or their customer is frozen.
    """
    return _STOPPED.format(table=table)


async def list_awaiting_review(conn: Db, limit: int) -> list[CounterpartyRow]:
    """Return counterparties whose documents wait for review, oldest first."""
    return await _counterparties.all(conn, _AWAITING_REVIEW, limit)


async def are_deposits_sent(conn: Db, bank_customer_id: UUID, counterparty_id: UUID) -> bool:
    """Return whether both micro-deposits of a counterparty have left the bank in a file."""
    sent_by = command_id(manage.DEPOSITS_CALLER, counterparty_id)
    return await conn.fetchval(_DEPOSITS_SENT, bank_customer_id, sent_by) is True


async def find_exchanged(pool: Pool, owner: UUID, exchange_id: UUID) -> str | None:
    """Return the sealed secret of a link whose accounts were not all added."""
    access: str | None = await pool.fetchval(_FIND_EXCHANGED, owner, exchange_id)
    return access


async def keep_exchanged(pool: Pool, owner: UUID, exchange_id: UUID, *, access: str, wall: datetime) -> None:
    """Store the sealed secret of a link until its accounts are added; for one token, the first secret stays."""
    await pool.execute(_KEEP_EXCHANGED, owner, exchange_id, access, wall)


async def forget_exchanged(pool: Pool, owner: UUID, exchange_id: UUID) -> None:
    """Delete the secret of a link: its accounts are added, or its token leads to none."""
    await pool.execute(_FORGET_EXCHANGED, owner, exchange_id)


async def find_payees(conn: Db, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the given ids that are counterparties of these customers, for flows."""
    rows = await conn.fetch(_FIND_PAYEES, uuid_array(customer_ids), uuid_array(ids))
    return [(row["customer_id"], row["counterparty_id"], payee_from_row(row)) for row in rows]


async def load_payees(conn: Connection, books: Mapping[UUID, Book]) -> None:
    """Load the counterparties of these books, by customer."""
    for row in await conn.fetch(_PAYEES_OF_CUSTOMERS, list(books)):
        books[row["customer_id"]].counterparties[row["counterparty_id"]] = payee_from_row(row)


async def find_peers(conn: Db, links: Sequence[PeerKey]) -> list[PeerRow | None]:
    """Return the target of each link, None for a counterparty that is not the customer's."""
    peers: list[PeerRow | None] = [None] * len(links)
    customers, pockets, ids = zip(*links, strict=True)
    for row in await conn.fetch(_PEERS, uuid_array(customers), uuid_array(pockets), uuid_array(ids)):
        target = (row["target_customer_id"], row["target_pocket_id"])
        chains = {row["target_customer_id"]: row["payee_chain"], row["customer_id"]: row["payer_chain"]}
        seen = Seen(chains, {row["counterparty_id"]: payee_from_row(row)}, clock_of_row(row))
        peers[row["nth"]] = PeerRow(
            row["type"], row["status"], *target, row["payer_address"], row["payee_address"], seen=seen
        )
    return peers
