"""Notifications of money and cards, derived from events of the log. `now` is wall time.

Each event is used once, in sequence order; each read of
notifications brings them up to date first. Customers without a team cost nothing.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.audit import record
from billfold.audit.rules import NewEntry
from billfold.events import sequencer
from billfold.events.notifications import notify as notification_notify
from billfold.events.notifications.notify import notify
from billfold.events.webhooks.attempts import FailingSubscription, OnFailing
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.background_work import put_aside, read_put_aside
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.distribution import await_prepared
from billfold.platform.database.pool import in_transaction
from billfold.platform.database.shortage import is_shortage
from billfold.platform.dates import iso_z
from billfold.platform.money import format_usd

BATCH_SIZE = 500
"""Maximum number of events per transaction."""
EVENTS_MAX = 5_000
"""Maximum number of events per call, which limits the duration of a read."""


_TRANSFER = """
SELECT t.amount, t.reason, p.name AS party
  FROM transfer t LEFT JOIN pocket p ON p.customer_id = t.customer_id AND p.pocket_id = t.to_pocket_id
 WHERE t.customer_id = $1 AND t.transfer_id = $2
"""


class PaymentNotification(NamedTuple):
    """The notification of an event type: its type, the words for what moved, and the field of its amount.

    `moved` names the payload field that identifies the movement.
    """

    type: str
    noun: str
    pocket: str
    moved: str


_IN, _DONE, _REJECTED = "FUNDS_RECEIVED", "TRANSFER_COMPLETED", "TRANSFER_REJECTED"
_ACCOUNT, _ORIGIN = "service_account_id", "origin_account_id"
PAYMENT_NOTIFICATIONS: Final[Mapping[str, PaymentNotification]] = {
    "transfers.ach.in.success": PaymentNotification(_IN, "An ACH credit", _ACCOUNT, moved="ach_id"),
    "transfers.ach.out.rejected": PaymentNotification(_REJECTED, "An ACH transfer", _ACCOUNT, moved="ach_id"),
    "transfers.ach.out.success": PaymentNotification(_DONE, "An ACH transfer", _ACCOUNT, moved="ach_id"),
    "transfers.on-us.received": PaymentNotification(
        _IN, "A transfer", "receiving_pocket_id", moved="transaction_activity_id"
    ),
    "transfers.on-us.rejected": PaymentNotification(_REJECTED, "A transfer", _ORIGIN, moved="on_us_id"),
    "transfers.on-us.success": PaymentNotification(_DONE, "A transfer", _ORIGIN, moved="on_us_id"),
    "transfers.wire.in.success": PaymentNotification(_IN, "A wire", _ACCOUNT, moved="wire_id"),
    "transfers.wire.out.rejected": PaymentNotification(_REJECTED, "A wire", _ACCOUNT, moved="wire_id"),
    "transfers.wire.out.success": PaymentNotification(_DONE, "A wire", _ACCOUNT, moved="wire_id"),
}
"""Kind of event -> its notification; other kinds have none."""
_ACH_IN: Final = PAYMENT_NOTIFICATIONS["transfers.ach.in.success"]
_COLLECTED: Final = "An ACH debit"
CARD_NOTIFICATIONS: Final[Mapping[str, str]] = {
    "card.status.frozen": "was frozen by the bank",
    "card.status.closed": "was closed",
}
"""Kind of event -> what happened to the card."""

REVERSAL_REQUESTED: Final = "transfers.on-us.reversal.updated"
"""The kind of event whose payee is notified of a new request."""

_TITLES = {_IN: "Money arrived", _DONE: "A transfer was carried out", _REJECTED: "A transfer was rejected"}
_PREDICATES = {
    _IN: "arrived in the Pocket",
    _DONE: "was sent from the Pocket",
    _REJECTED: "was rejected; nothing left the Pocket",
}

_HAS_NEW = (
    "SELECT EXISTS (SELECT 1 FROM event_sequence, notification_cursor m WHERE event_sequence.global_sequence "
    "> m.global_sequence)"
)
_LOCK_CURSOR = "SELECT global_sequence FROM notification_cursor FOR UPDATE"
_BATCH_END = """
SELECT max(global_sequence)
       FROM (SELECT global_sequence FROM event_sequence WHERE global_sequence > $1 ORDER BY global_sequence LIMIT $2) t
"""
_NEW_EVENTS = """
WITH t AS MATERIALIZED (
  SELECT t.customer_id, t.event_no, t.event_id, t.kind, t.raised_at, t.global_sequence, e.payload
    FROM event_sequence t JOIN event e USING (customer_id, event_no)
   WHERE t.global_sequence > $1 AND t.global_sequence <= $2 AND t.kind = ANY($3)
     AND EXISTS (SELECT 1 FROM membership m
                  WHERE m.customer_id = t.customer_id AND m.status = 'ACTIVE')
), p AS MATERIALIZED (
  SELECT customer_id, event_no FROM notification_baseline
   WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM t)))
SELECT customer_id, event_id, kind, raised_at, payload FROM t
 WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.customer_id = t.customer_id AND p.event_no >= t.event_no)
 ORDER BY global_sequence
"""
_EVENTS = """
SELECT t.customer_id, t.event_id, t.kind, t.raised_at, e.payload
  FROM event_sequence t JOIN event e USING (customer_id, event_no) WHERE t.event_id = ANY($1::uuid[])
"""
_AMOUNT_BY_REFERENCE = """
SELECT (array_agg(amount ORDER BY entry_no DESC))[1] AS amount,
       (array_agg(activity_id ORDER BY entry_no))[1] AS transaction_id,
       (array_agg(coalesce(details->>'counterparty_name', details->>'company_name') ORDER BY entry_no))[1] AS party,
       (array_agg(direction ORDER BY entry_no))[1] AS direction -- before a return
  FROM transaction WHERE customer_id = $1 AND pocket_id = $2 AND details->>$3 = $4
"""
_ACTIVITY = """
SELECT amount, activity_id AS transaction_id, details->'counterparty'->>'name' AS party, direction
  FROM transaction WHERE customer_id = $1 AND activity_id = $2
"""
_CARD = """
SELECT c.last_four, c.pocket_id, p.name FROM card c JOIN pocket p USING (customer_id, pocket_id)
 WHERE c.customer_id = $1 AND c.card_id = $2
"""
_REVERSAL = """
SELECT requester_id, amount, reason, status FROM reversal_request WHERE customer_id = $1 AND reversal_id = $2
"""
_NAME = "SELECT name FROM pocket WHERE customer_id = $1 AND pocket_id = $2"


async def notify_of_payments(conn: Db, vault: Vault, *, now: datetime, wait: bool = True) -> int:
    """Notify users of events since the last call; return how many events there were.

    Safe from anywhere at any time. Without `wait` it returns while another transaction does it.
    """
    await sequencer.sequence_events(conn, now=now, wait=wait)
    processed = 0
    while processed < EVENTS_MAX and await conn.fetchval(_HAS_NEW):
        async with in_transaction(conn) as tx:
            step = await _process_events(tx, vault, now, mark=_LOCK_CURSOR if wait else f"{_LOCK_CURSOR} SKIP LOCKED")
        if step is None:
            break
        processed += step
    return processed


async def _process_events(conn: Connection, vault: Vault, now: datetime, mark: str) -> int | None:
    """Process up to BATCH_SIZE events; None if another transaction does."""
    last_processed = await conn.fetchval(mark)
    if last_processed is None:
        return None
    batch_end = await conn.fetchval(_BATCH_END, last_processed, BATCH_SIZE)
    if batch_end is None:
        return None
    await await_prepared(conn)  # an event is seen before what other nodes have of its payment
    kinds = [*PAYMENT_NOTIFICATIONS, *CARD_NOTIFICATIONS, REVERSAL_REQUESTED]
    for index, row in enumerate(await conn.fetch(_NEW_EVENTS, last_processed, batch_end, kinds)):
        try:
            async with conn.transaction():
                # Lists are sorted by time: notifications of one batch keep the order of their events.
                await _notify_customer(conn, vault, row, now=now + timedelta(microseconds=index))
        except Exception as error:
            if is_shortage(error):
                raise
            await put_aside(conn, "notification", str(row["event_id"]), error, now=now, tries=1)
    await conn.execute("UPDATE notification_cursor SET global_sequence = $1", batch_end)
    return int(batch_end - last_processed)


async def retry_notifications(pool: Pool, vault: Vault, *, now: datetime) -> int:
    """Notify users of events that failed before; return how many there were."""
    failed: dict[str, Exception] = {}
    aside = await read_put_aside(pool, "notification", now)
    for row in await pool.fetch(_EVENTS, list(map(UUID, aside.due))) if aside.due else ():
        try:
            async with in_transaction(pool) as tx:
                await _notify_customer(tx, vault, row, now=now)
        except Exception as error:  # noqa: BLE001 - recorded
            failed[str(row["event_id"])] = error
    await aside.record(pool, failed, now)
    return len(aside.due) - len(failed)


async def _notify_customer(conn: Connection, vault: Vault, row: Record, now: datetime) -> None:
    notify_users = _notify_of_card if row["kind"] in CARD_NOTIFICATIONS else _notify_of_payment
    if row["kind"] == REVERSAL_REQUESTED:
        notify_users = _notify_of_reversal
    await notify_users(conn, vault, row, now)


async def _notify_of_reversal(conn: Connection, vault: Vault, row: Record, now: datetime) -> None:
    """Notify the payee of a request that is still open; answers are shown where it was made."""
    payload = msgspec.json.decode(row["payload"])
    asked = await conn.fetchrow(_REVERSAL, row["customer_id"], UUID(payload["reversal_request_id"]))
    if payload["status"] != "REQUESTED" or asked is None or asked["status"] != "REQUESTED":
        return
    payer = await conn.fetchval("SELECT name FROM customer WHERE customer_id = $1", asked["requester_id"])
    because = f": {asked['reason']}" if asked["reason"] else ""
    await notify(
        conn,
        vault,
        row["customer_id"],
        kind="REVERSAL_REQUESTED",
        title="A payer requests a payment back",
        description=f"{payer} requests {format_usd(asked['amount'])} back{because}. Pay it back, or decline.",
        metadata={
            **_event_metadata(row),
            "reversal_request_id": payload["reversal_request_id"],
            "amount_usdc": asked["amount"],
        },
        now=now,
    )


async def _notify_of_card(conn: Connection, vault: Vault, row: Record, now: datetime) -> None:
    customer_id, card_id = row["customer_id"], msgspec.json.decode(row["payload"])["card_id"]
    card = await conn.fetchrow(_CARD, customer_id, UUID(card_id))
    assert card is not None
    await notify(
        conn,
        vault,
        customer_id,
        kind="CARD_STATUS_CHANGED",
        title="A card was frozen or closed",
        description=f"The card {card['last_four']} of the Pocket {card['name']} {CARD_NOTIFICATIONS[row['kind']]}.",
        metadata={**_event_metadata(row), "pocket_id": card["pocket_id"], "card_id": card_id},
        now=now,
    )


async def _notify_of_payment(conn: Connection, vault: Vault, row: Record, now: datetime) -> None:
    meaning = PAYMENT_NOTIFICATIONS[row["kind"]]
    customer_id, payload = row["customer_id"], msgspec.json.decode(row["payload"])
    pocket_id = UUID(payload[meaning.pocket])
    moved = await _find_moved(conn, customer_id, pocket_id, meaning=meaning, payload=payload)
    if meaning is _ACH_IN:
        if moved.get("amount") is None:  # a prenote moves nothing
            return
        if moved["direction"] == "DEBIT":
            meaning = meaning._replace(type=_DONE, noun=_COLLECTED)
    name = await conn.fetchval(_NAME, customer_id, pocket_id)
    metadata: dict[str, Any] = {
        **_event_metadata(row),
        "pocket_id": pocket_id,
        meaning.moved: payload.get(meaning.moved),
        "transaction_id": moved.get("transaction_id"),
        "amount_usdc": moved.get("amount"),
        "reason": moved.get("reason"),
    }
    await notify(
        conn,
        vault,
        customer_id,
        kind=meaning.type,
        title=_TITLES[meaning.type],
        description=describe(meaning, moved.get("amount"), name, party=moved.get("party"), reason=moved.get("reason")),
        metadata={key: value for key, value in metadata.items() if value is not None},
        now=now,
    )


def _event_metadata(row: Record) -> dict[str, Any]:
    return {"event_id": row["event_id"], "event_type": row["kind"], "occurred_at": iso_z(row["raised_at"])}


def describe(
    meaning: PaymentNotification, cents: int | None, pocket: str, *, party: str | None = None, reason: str | None
) -> str:
    """Return what happened in one sentence: "A wire of $1.00 from Contoso arrived in the Pocket Reserve." """
    amount = "" if cents is None else f" of {format_usd(cents)}"
    because = "" if reason is None else f" ({reason})"
    is_collected = meaning.noun == _COLLECTED
    predicate = "was collected from the Pocket" if is_collected else _PREDICATES[meaning.type]
    between = "by" if is_collected else "from" if meaning.type == _IN else "to"
    whose = f" {between} {party}" if party else ""
    return f"{meaning.noun}{amount}{whose} {predicate} {pocket}{because}."


async def _find_moved(
    conn: Connection, customer_id: UUID, pocket_id: UUID, meaning: PaymentNotification, payload: dict[str, Any]
) -> Mapping[str, Any]:
    """Return what is known of a payment: its amount in cents, the other party, its transaction, its direction as the
    other side asked for it, and the reason for a rejection.
    """
    reference = payload.get(meaning.moved)
    if reference is None:
        return {}
    if meaning.moved == "on_us_id":
        moved = await conn.fetchrow(_TRANSFER, customer_id, UUID(reference))
    elif meaning.moved == "transaction_activity_id":
        moved = await conn.fetchrow(_ACTIVITY, customer_id, UUID(reference))
    else:
        moved = await conn.fetchrow(_AMOUNT_BY_REFERENCE, customer_id, pocket_id, meaning.moved, reference)
    return dict(moved or {})


_FAILING_TEXT = "Its last deliveries all failed. They are tried again as its retry policy says."
_DISABLED_TEXT = "Its receiver answered 410 Gone, so it was disabled and receives nothing any more."


class NotificationWorker:
    """A periodic task of the worker. Pending events stay in the log."""

    def __init__(self, clock: Callable[[], datetime] = wall_now) -> None:
        self._clock = clock

    async def __call__(self, bank: Bank) -> int:
        """Notify of new events; return how many there were."""
        now = self._clock()
        retried = await retry_notifications(bank.pool, bank.vault, now=now)
        return retried + await notify_of_payments(bank.pool, bank.vault, now=now, wait=False)


def failing_notifier(vault: Vault, clock: Callable[[], datetime] = wall_now) -> OnFailing:
    """Return the callback for subscriptions that begin to fail; it runs in the transaction of the attempts."""

    async def notify_failing(conn: Connection, failing: FailingSubscription) -> None:
        if failing.customer_id is None:
            return
        now = clock()
        await notification_notify.notify(
            conn,
            vault,
            failing.customer_id,
            kind="SUBSCRIPTION_DELIVERY_FAILING",
            title="Webhook deliveries fail",
            description=_DISABLED_TEXT if failing.ended else _FAILING_TEXT,
            metadata={"subscription_id": failing.subscription_id},
            now=now,
        )
        if failing.ended:
            entry = NewEntry(
                customer_id=failing.customer_id,
                origin=Origin.system(),
                action="subscription.disabled",
                resource_type="subscription",
                resource_id=failing.subscription_id,
                details={"because": "410 Gone"},
            )
            await record.record(conn, vault, entry, now=now)

    return notify_failing
