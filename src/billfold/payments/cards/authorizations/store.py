"""Queries of authorizations, card payments, and card spending."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from billfold.payments.cards.authorizations import commands
from billfold.payments.cards.commands import CardRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.pool import uuid_array
from billfold.platform.database.rows import References, Table

_cards, _authorizations = Table(CardRow), Table(commands.AuthorizationRow)
_payments, _limits = Table(commands.CardPaymentRow), Table(commands.CardLimitsRow)
_late = Table(commands.LateMessageRow, key=("message_id",), noun="message")
# One query, for low latency: cards, authorizations, payments, limits with the spending of the last day.
_REFERENCED = """
WITH k AS MATERIALIZED (SELECT $1::text::uuid[] AS customers, $2::text::uuid[] AS ids),
cards AS MATERIALIZED (
  SELECT c AS found FROM card c
   WHERE customer_id = ANY((SELECT customers FROM k)::uuid[]) AND card_id = ANY((SELECT ids FROM k)::uuid[])
), authorizations AS MATERIALIZED (
  SELECT a AS found FROM card_authorization a
   WHERE customer_id = ANY((SELECT customers FROM k)::uuid[]) AND authorization_id = ANY((SELECT ids FROM k)::uuid[])
), payments AS MATERIALIZED (
  SELECT p AS found FROM card_payment p
   WHERE customer_id = ANY((SELECT customers FROM k)::uuid[]) AND record_id = ANY((SELECT ids FROM k)::uuid[])
), limits AS MATERIALIZED (
  SELECT l AS found, a.authorized_on, a.spent
    FROM card_limits l
    LEFT JOIN LATERAL (
      SELECT authorized_on, json_object_agg(category_code, cents) AS spent
        FROM (SELECT authorized_on, category_code,
                     sum(greatest(greatest(approved - reversed, cleared) - spent_before, 0))::bigint AS cents
                FROM card_authorization c
               WHERE c.customer_id = l.customer_id AND c.card_id = l.card_id
                 AND authorized_on = (SELECT max(authorized_on) FROM card_authorization m
                                       WHERE m.customer_id = l.customer_id AND m.card_id = l.card_id)
               GROUP BY authorized_on, category_code) day
       GROUP BY authorized_on) a ON true
   WHERE l.customer_id = ANY((SELECT customers FROM k)::uuid[]) AND l.card_id = ANY((SELECT ids FROM k)::uuid[])
)
SELECT ARRAY(SELECT found FROM cards), ARRAY(SELECT found FROM authorizations), ARRAY(SELECT found FROM payments),
       array_agg(found), array_agg(authorized_on), array_agg(spent)
  FROM limits
"""
_TO_REVERSE = f"""{_late.select} WHERE customer_id = $1
   AND message_id IN (SELECT object_id FROM scheduled_job WHERE kind = $2)"""
# The day is found once for each card: a card may have thousands of authorizations.
_OF_LAST_DAY = f"""
SELECT {_authorizations.columns("a")} FROM card k JOIN card_authorization a
    ON (a.customer_id, a.card_id) = (k.customer_id, k.card_id)
   AND a.authorized_on = (SELECT max(authorized_on) FROM card_authorization m
                           WHERE m.customer_id = k.customer_id AND m.card_id = k.card_id)
 WHERE k.customer_id = ANY($1) AND k.card_id = ANY($2)
"""
_LATE_LOCK = 0x6C617465  # "late"
_IN_TURN = f"SELECT pg_advisory_xact_lock({_LATE_LOCK}, hashtext($1))"
get_authorization = _authorizations.get
get_payment = _payments.get
find_limits = _limits.find
get_late = _late.get


async def find_authorization(
    conn: Db, customer_id: UUID, card_id: UUID, network_reference: str
) -> commands.AuthorizationRow | None:
    """Return the authorization of a purchase, if there is one."""
    return await _authorizations.find(conn, customer_id, commands.authorization_id_of(card_id, network_reference))


async def find_payment_authorization(
    conn: Db, customer_id: UUID, authorization_id: UUID | None
) -> commands.AuthorizationRow | None:
    """Return the authorization that a payment names, if it names one that was asked for."""
    return None if authorization_id is None else await _authorizations.find(conn, customer_id, authorization_id)


async def load_days(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, list[commands.AuthorizationRow]]]:
    """Return the authorizations of the last day of each of these customers' cards among the ids."""
    days: dict[tuple[UUID, UUID], list[commands.AuthorizationRow]] = {}
    for row in await _authorizations.all(conn, _OF_LAST_DAY, list(customer_ids), list(ids)):
        days.setdefault((row.customer_id, commands.day_id_of(row.card_id)), []).append(row)
    return [(*place, rows) for place, rows in days.items()]


async def keep_late(conn: Db, late: commands.LateMessageRow) -> None:
    """Store a message that was not decided in time; an existing one is not changed. Call it in a transaction."""
    await conn.execute(_IN_TURN, str(late.customer_id))
    await _late.insert(conn, late, "ON CONFLICT (message_id) DO NOTHING")


async def list_to_reverse(conn: Db, customer_id: UUID) -> list[commands.LateMessageRow]:
    """Return the late messages of a customer that may not be reversed yet."""
    await _await_kept(conn, customer_id)  # one that is passed over would be reversed at the cost of what followed it
    return await _late.all(conn, _TO_REVERSE, customer_id, commands.LATE_JOB)


async def is_late(conn: Db, customer_id: UUID, message_id: UUID) -> bool:
    """Return whether a message of a customer was not decided in time."""
    await _await_kept(conn, customer_id)  # or it would be approved, and reversed later
    return await _late.find(conn, message_id) is not None


async def _await_kept(conn: Db, customer_id: UUID) -> None:
    """Wait for late messages of a customer that are being stored, though their storing may have been given up."""
    await conn.execute(_IN_TURN, str(customer_id))
    await await_prepared(conn)


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the cards of these customers among the ids with their spending, and the authorizations and payments."""
    found = await conn.fetchrow(_REFERENCED, uuid_array(customer_ids), uuid_array(ids))
    assert found is not None
    cards, authorizations, payments, limits, days, spent = (each or () for each in found)
    return [
        *((row["customer_id"], row["card_id"], _cards.read(row)) for row in cards),
        *((row["customer_id"], row["authorization_id"], _authorizations.read(row)) for row in authorizations),
        *((row["customer_id"], row["record_id"], _payments.read(row)) for row in payments),
        *(
            (
                row["customer_id"],
                commands.spending_id_of(row["card_id"]),
                commands.CardSpending(_limits.read(row), day, msgspec.json.decode(cents or "{}")),
            )
            for row, day, cents in zip(limits, days, spent, strict=True)
        ),
    ]
