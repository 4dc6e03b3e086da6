"""The facts that a policy decides by: the parties of payments, and what was used before them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from operator import add
from typing import NamedTuple, get_args
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.counterparties.types import format_name
from billfold.approvals.transfer_orders import InternalReallocation, OnUsOrder, RequestContent
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.notes import open_note
from billfold.ledger.bank import Bank
from billfold.payments.on_us.store import find_by_ids
from billfold.platform.database.connection import Db
from billfold.platform.dates import ET, et_date
from billfold.policies.types import InitiatorFacts, LocalTime, PayeeFacts, PaymentFacts, PocketFacts, Used, Weekday

_PAYEES = """
SELECT counterparty_id, type, counterparty_name, details ->> 'routing_number' AS bank, created_at FROM counterparty
 WHERE customer_id = $1 AND counterparty_id = ANY($2)
"""
_POCKETS = """
SELECT p.pocket_id, p.name, p.opened_at, n.external_id
  FROM pocket p LEFT JOIN object_note n ON n.customer_id = p.customer_id AND n.object_id = p.pocket_id
 WHERE p.customer_id = $1 AND p.pocket_id = ANY($2)
"""
_INITIATORS = """
SELECT m.member_id, 'PERSON' AS kind, m.role, m.status = 'ACTIVE' AND p.status = 'ACTIVE' AS active
  FROM membership m JOIN user_account p USING (user_id) WHERE m.customer_id = $1 AND m.member_id = ANY($2)
 UNION ALL
SELECT c.member_id, 'SERVICE_USER', 'SERVICE', c.revoked_at IS NULL
  FROM oauth_client c WHERE c.customer_id = $1 AND c.member_id = ANY($2)
"""
# $2 first day of the month, $3 the business day, $4 requests left out, $5 the payees of interest, $6 and $7 the
# place of the first request that does not count. A business day begins after the close of the one before. The payee of
# a reversal is the transfer that another customer is paid back; own ones (`o`) stay within the customer. Rejected
# payments are few: they are read once, not looked up for each request. The content is only parsed for reversals.
_USED = """
WITH rejected AS MATERIALIZED (
  SELECT transfer_id AS id FROM transfer WHERE customer_id = $1 AND created_at >= $2::date - 7 AND status = 'REJECTED'
   UNION ALL
  SELECT wire_id FROM wire WHERE customer_id = $1 AND created_at >= $2::date - 7 AND status = 'REJECTED'
   UNION ALL
  SELECT withdrawal_id FROM crypto_withdrawal
   WHERE customer_id = $1 AND updated_at >= $2::date - 7 AND status = 'REJECTED'
), asked AS (
  SELECT coalesce(q.counterparty_id, CASE WHEN q.counterparty_id IS NULL
                                          THEN (q.content #>> '{transfer,details,transfer_id}')::uuid END) AS payee,
         q.counterparty_id IS NULL AS is_reversal, q.amount, q.business_date
    FROM transfer_request q
   WHERE q.customer_id = $1 AND q.created_at >= $2::date - 7 AND q.business_date BETWEEN $2 AND $3
     AND q.request_id <> ALL($4) AND q.status IN ('PENDING', 'APPROVED') AND q.reason IS NULL
     AND q.series_state IS NULL AND q.request_id NOT IN (SELECT id FROM rejected)
     AND ($6::timestamptz IS NULL OR (q.created_at, q.written_no) < ($6, $7::bigint))
), waiting AS MATERIALIZED (
  SELECT r.object_id, r.amount, b.business_date, coalesce(r.content #>> '{transfer,counterparty_id}',
         r.content #>> '{transfer,details,destination_counterparty_id}')::uuid AS payee
    FROM batch b JOIN batch_row r ON r.customer_id = b.customer_id AND r.batch_id = b.request_id
   WHERE b.customer_id = $1 AND r.customer_id = $1 AND b.business_date BETWEEN $2 AND $3
     AND b.status IN ('PENDING', 'APPROVED') AND b.finished_at IS NULL AND r.state = 'WAITING'
     AND r.object_id <> ALL($4) AND ($6::timestamptz IS NULL OR b.created_at < $6)
), made AS (
  SELECT payee, amount, business_date FROM asked
   WHERE NOT is_reversal
      OR NOT EXISTS (SELECT 1 FROM transfer o WHERE o.customer_id = $1 AND o.transfer_id = asked.payee)
   UNION ALL
  SELECT payee, amount, business_date FROM waiting r
   WHERE NOT EXISTS (SELECT 1 FROM transfer_request q WHERE q.customer_id = $1 AND q.request_id = r.object_id)
)
SELECT CASE WHEN payee = ANY($5) THEN payee END,
       coalesce(sum(amount) FILTER (WHERE business_date = $3), 0)::bigint, count(*) FILTER (WHERE business_date = $3),
       sum(amount)::bigint, count(*)
  FROM made WHERE payee IS NOT NULL GROUP BY 1
"""
_WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)


@dataclass(slots=True)
class Usage:
    """The amounts paid or requested on a business day and in its month, in all and `by_payee` of interest.

    Each is the cents and the number of the day, and those of the month.
    """

    day: date
    total: list[int] = field(default_factory=lambda: [0] * 4)
    by_payee: dict[UUID, list[int]] = field(default_factory=dict)

    def of(self, payee: UUID | None) -> Used:
        """Return what was used before a payment to a payee; None: within the customer."""
        today, count, month, month_count = self.total
        to_payee = self.by_payee.get(payee, [0] * 4) if payee is not None else [0] * 4
        return Used(
            today_cents=today,
            today_count=count,
            month_cents=month,
            month_count=month_count,
            payee_today_cents=to_payee[0],
            payee_month_cents=to_payee[2],
        )

    def add(self, payee: UUID | None, amount: int) -> None:
        """Count a payment; one between Pockets of the customer uses nothing."""
        if payee is not None:
            self._add(self.total, amount, 1, amount, 1)
            self._add(self.by_payee.setdefault(payee, [0] * 4), amount, 1, amount, 1)

    def start_day(self, day: date) -> None:
        """Begin another day of the month."""
        if day != self.day:
            self.day = day
            for used in (self.total, *self.by_payee.values()):
                used[:2] = 0, 0

    @staticmethod
    def _add(used: list[int], *more: int) -> None:
        used[:] = map(add, used, more)


class Parties(NamedTuple):
    """The facts about payees, Pockets and initiators by their ids, and the days since which payees are known."""

    payees: Mapping[UUID, tuple[PayeeFacts, date]]
    pockets: Mapping[UUID, PocketFacts]
    initiators: Mapping[UUID, InitiatorFacts]

    def payment(self, content: RequestContent, member_id: UUID, at: datetime) -> PaymentFacts:
        """Return the facts about a payment that is decided at a time. A payee that does not exist any more is empty."""
        payee, since = self.payees.get(payee_id_of(content), (PayeeFacts(), et_date(at)))
        return PaymentFacts(
            amount_cents=content.amount,
            rail=content.type,
            direction="INTERNAL" if self.counted_payee(content) is None else "OUT",
            payee=msgspec.structs.replace(payee, age_days=max((et_date(at) - since).days, 0)),
            pocket=self.pockets.get(content.pocket_id, PocketFacts(id=str(content.pocket_id))),
            at=local_time(at),
            initiator=self.initiators.get(member_id, InitiatorFacts(id=str(member_id))),
        )

    def counted_payee(self, content: RequestContent) -> UUID | None:
        """Return the payee by which a payment counts as used; None within the customer."""
        if content.reverses_id is None:
            return content.counterparty_id
        payee, _ = self.payees.get(content.reverses_id, (None, None))
        return None if payee is not None and payee.kind == "pocket" else content.reverses_id


def payee_id_of(content: RequestContent) -> UUID:
    """Return the counterparty, the Pocket of the customer, or by its transfer the payer, that is paid or paid back."""
    if (found := content.counterparty_id or content.reverses_id) is not None:
        return found
    order = content.transfer
    assert isinstance(order, OnUsOrder)
    assert isinstance(order.details, InternalReallocation)
    return order.details.destination_pocket_id


def local_time(at: datetime) -> LocalTime:
    """Return a time as clocks in New York show it."""
    local = at.astimezone(ET)
    return LocalTime(
        date=local.date().isoformat(), weekday=_WEEKDAYS[local.weekday()], hour=local.hour, minute=local.minute
    )


async def load_parties(
    bank: Bank, conn: Db, customer_id: UUID, contents: Sequence[RequestContent], members: Sequence[UUID]
) -> Parties:
    """Return the facts about the parties of payments, as they are now."""
    named = list({payee_id_of(each) for each in contents})
    originals = await find_by_ids(conn, {each.reverses_id for each in contents if each.reverses_id is not None})
    own = {key: each.from_pocket_id for key, each in originals.items() if each.customer_id == customer_id}
    pocket_ids = list({*named, *own.values(), *(each.pocket_id for each in contents)})
    rows = await conn.fetch(_POCKETS, customer_id, pocket_ids)
    ring = await bank.ports[DataKeys].load(conn, (customer_id,)) if any(row["external_id"] for row in rows) else {}
    pockets, payees = {}, {}
    for row in rows:
        external_id = open_note(ring.get(customer_id), dict(row)).get("external_id", "") if row["external_id"] else ""
        pockets[row["pocket_id"]] = PocketFacts(id=str(row["pocket_id"]), name=row["name"], external_id=external_id)
        payee = PayeeFacts(id=str(row["pocket_id"]), name=row["name"], kind="pocket", country="US")
        payees[row["pocket_id"]] = payee, et_date(row["opened_at"])
    for key, original in originals.items():
        paid_back = PayeeFacts(id=str(key), kind="reversal", country="US"), et_date(original.created_at)
        payees[key] = payees[own[key]] if key in own else paid_back
    for row in await conn.fetch(_PAYEES, customer_id, named):
        payees[row["counterparty_id"]] = _payee_of(row), et_date(row["created_at"])
    initiators = {
        row["member_id"]: InitiatorFacts(
            id=str(row["member_id"]), kind=row["kind"], roles=[row["role"]] if row["active"] else []
        )
        for row in await conn.fetch(_INITIATORS, customer_id, list(members))
    }
    return Parties(payees, pockets, initiators)


def _payee_of(row: Record) -> PayeeFacts:
    country = "" if row["type"] == "crypto_wallet_address" else "US"
    if row["type"] == "international_wire":
        country = (row["bank"] or "")[4:6]  # of a BIC
    name = format_name(msgspec.json.decode(row["counterparty_name"]))
    return PayeeFacts(id=str(row["counterparty_id"]), name=name, kind=row["type"], country=country)


async def load_usage(
    conn: Db,
    customer_id: UUID,
    contents: Sequence[RequestContent],
    day: date,
    *,
    before: tuple[datetime, int] | None = None,
) -> Usage:
    """Return what the others use, all or those requested before a place."""
    ids = [each.request_id for each in contents]
    payees = [found for each in contents if (found := each.counterparty_id or each.reverses_id) is not None]
    rows = await conn.fetch(_USED, customer_id, day.replace(day=1), day, ids, payees, *(before or (None, None)))
    by_payee = {payee: used for payee, *used in rows}
    total = [sum(each) for each in zip(*by_payee.values(), [0] * 4, strict=True)]
    return Usage(day, total, {payee: used for payee, used in by_payee.items() if payee is not None})
