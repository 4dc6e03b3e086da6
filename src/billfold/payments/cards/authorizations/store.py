"""Queries of authorizations, card payments, and what cards spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.payments.cards.authorizations.types import (
    AuthorizationRow,
    CardLimitsRow,
    CardPaymentRow,
    CardSpending,
    LateMessageRow,
    authorization_id_of,
    spending_id_of,
)
from billfold.payments.cards.types import CardRow
from billfold.platform.database.keyset import reads
from billfold.platform.database.pool import uuid_array
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_card, _authorization = reads(CardRow), reads(AuthorizationRow)
_payment, _limits = reads(CardPaymentRow), reads(CardLimitsRow)
_GET = "SELECT * FROM card_authorization WHERE customer_id = $1 AND authorization_id = $2"
_GET_PAYMENT = "SELECT * FROM card_payment WHERE customer_id = $1 AND record_id = $2"
# One query, as a card waits for it: cards, authorizations, payments, limits with what was spent on the last day.
_REFERENCED = """
WITH k AS MATERIALIZED (SELECT $1::text::uuid[] AS customers, $2::text::uuid[] AS ids)
SELECT ARRAY(SELECT c FROM card c
              WHERE customer_id = ANY((SELECT customers FROM k)::uuid[])
                AND card_id = ANY((SELECT ids FROM k)::uuid[])),
       ARRAY(SELECT a FROM card_authorization a
              WHERE customer_id = ANY((SELECT customers FROM k)::uuid[])
                AND authorization_id = ANY((SELECT ids FROM k)::uuid[])),
       ARRAY(SELECT p FROM card_payment p
              WHERE customer_id = ANY((SELECT customers FROM k)::uuid[])
                AND record_id = ANY((SELECT ids FROM k)::uuid[])),
       array_agg(l), array_agg(a.authorized_on), array_agg(a.spent)
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
"""
_KEEP_LATE = """
INSERT INTO card_late_message (message_id, customer_id, message) VALUES ($1, $2, $3) ON CONFLICT (message_id) DO NOTHING
"""
_GET_LATE = "SELECT message FROM card_late_message WHERE message_id = $1"
_GET_LIMITS = "SELECT * FROM card_limits WHERE customer_id = $1 AND card_id = $2"


async def find_authorization(
    conn: Connection | Pool, customer_id: UUID, card_id: UUID, network_reference: str
) -> AuthorizationRow | None:
    """Return the authorization of a purchase, if there is one."""
    row = await conn.fetchrow(_GET, customer_id, authorization_id_of(card_id, network_reference))
    return None if row is None else _authorization(row)


async def get_authorization(conn: Connection | Pool, customer_id: UUID, authorization_id: UUID) -> AuthorizationRow:
    """Return an authorization. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, authorization_id)
    if row is None:
        raise NotFound("There is no such authorization.")
    return _authorization(row)


async def get_payment(conn: Connection | Pool, customer_id: UUID, record_id: UUID) -> CardPaymentRow:
    """Return what a record of the settlement moved. Raises NotFound."""
    row = await conn.fetchrow(_GET_PAYMENT, customer_id, record_id)
    if row is None:
        raise NotFound("There is no such card payment.")
    return _payment(row)


async def keep_late(conn: Connection | Pool, late: LateMessageRow) -> None:
    """Keep a message that was not decided in time; one that is kept stays."""
    await conn.execute(_KEEP_LATE, *msgspec.structs.astuple(late))


async def is_late(conn: Connection | Pool, message_id: UUID) -> bool:
    """Tell whether a message was not decided in time."""
    return await conn.fetchval(_GET_LATE, message_id) is not None


async def get_late(conn: Connection | Pool, message_id: UUID) -> str:
    """Return a message that was not decided in time, as JSON text. Raises NotFound."""
    message: str | None = await conn.fetchval(_GET_LATE, message_id)
    if message is None:
        raise NotFound("There is no such message.")
    return message


async def find_limits(conn: Connection | Pool, customer_id: UUID, card_id: UUID) -> CardLimitsRow | None:
    """Return the limits of a card, if they were ever set."""
    row = await conn.fetchrow(_GET_LIMITS, customer_id, card_id)
    return None if row is None else _limits(row)


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the cards of these customers among the ids with their spending, and the authorizations and payments."""
    found = await conn.fetchrow(_REFERENCED, uuid_array(customer_ids), uuid_array(ids))
    assert found is not None
    cards, authorizations, payments, limits, days, spent = (each or () for each in found)
    return [
        *((row["customer_id"], row["card_id"], _card(row)) for row in cards),
        *((row["customer_id"], row["authorization_id"], _authorization(row)) for row in authorizations),
        *((row["customer_id"], row["record_id"], _payment(row)) for row in payments),
        *(
            (
                row["customer_id"],
                spending_id_of(row["card_id"]),
                CardSpending(_limits(row), day, msgspec.json.decode(cents or "{}")),
            )
            for row, day, cents in zip(limits, days, spent, strict=True)
        ),
    ]
