"""The caller and the resources it owns. Every authentication ends in one frozen `Call`.

A resource of someone else is treated as unknown: NotFound.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from billfold.http.parameters import Parameter
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Outcome
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.ledger.engine.pending_command import KeptResponse
from billfold.ledger.types import Origin
from billfold.platform.calendars import Calendars
from billfold.platform.dates import DAY_RANGE, is_day, parse_day, parse_instant
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.ids import command_id, derive


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One authenticated request: its sender, its key, and its time.

    `name` is the sender in the audit log, `key` the idempotency key, `fingerprint` the hash
    of method, path, query and body it is bound to, `operation` the operationId. `now` is the
    business time at which the request was admitted, `wall` the wall time of the same moment;
    neither costs a round trip.
    """

    partner_id: UUID
    name: str
    key: UUID
    fingerprint: bytes
    operation: str
    now: datetime
    wall: datetime
    host: str
    """The host as sent, with its port: `acme.localhost:8443`. Links are built with it."""
    trace_id: str
    address: str
    """The IP address from which it came, behind trusted proxies."""
    agent: str | None
    """The User-Agent of the client."""
    as_of: datetime | None = None
    """The instant that a read answers as of, which is also its `now`; None for the present."""
    response: Callable[[Callable[[Outcome], object]], KeptResponse | None] = lambda _: None
    """Returns the response for `Engine.submit`, of a function that returns what the handler returns for an outcome."""

    @property
    def origin(self) -> Origin:
        """The caller as recorded in the audit log."""
        raise NotImplementedError

    @property
    def key_owner(self) -> str:
        """The owner of the caller's idempotency keys: the same key of the same owner is the same command."""
        return self.name

    def command_fields(self, *customers: UUID, step: int = 0) -> dict[str, Any]:
        """Return the fields that every command has: `OpenPocket(**caller.command_fields(id), name=...)`.

        The first customer owns the command. A request that sends several commands numbers them
        by `step`, always in the same order, so that a repeated request finds each of them.
        """
        return {
            "caller": f"{self.key_owner}:{step}" if step else self.key_owner,
            "key": self.key,
            "request_hash": self.fingerprint,
            "customers": customers,
            "origin": self.origin,
        }

    def new_resource_id(self, seed: bytes) -> UUID:
        """Return the id of the object that the request creates: the same when it is repeated under its key."""
        return derive(seed, command_id(self.key_owner, self.key), 0)

    @property
    def only_customer_id(self) -> UUID | None:
        """The one customer a token is for; None for a partner, whose customers are all allowed."""
        return None

    def may(self, scope: str) -> bool:  # noqa: ARG002 - a partner may do all that its operations offer
        """Tell whether it may do what a scope of the Customer API permits."""
        return True

    async def customer(self, bank: Bank, customer_id: UUID | None = None) -> CustomerRow:
        """Return the current row of a customer; by default the token's. Raises NotFound if it is not the caller's."""
        own_id = self.only_customer_id or customer_id
        row = None if own_id is None else await find_customer(bank.pool, own_id)
        if row is None or row.partner_id != self.partner_id or not self._was_there(row):
            raise NotFound("There is no such customer.")
        return row

    def _was_there(self, row: CustomerRow) -> bool:
        return self.as_of is None or row.opened_at <= self.as_of

    async def owner(self, bank: Bank, customer_id: UUID | None) -> UUID:
        """Return the token's customer, or else the one named in the path, from memory. Raises NotFound."""
        own_id = self.only_customer_id
        if own_id is None:
            assert customer_id is not None
            own_id = (await self.owned(bank, "customer", customer_id))[0]
        if self.as_of is not None:
            row = await find_customer(bank.pool, own_id)
            if row is None or not self._was_there(row):
                raise NotFound("There is no such customer.")
        return own_id

    async def owned(self, bank: Bank, kind: str, value: UUID) -> tuple[UUID, UUID]:
        """Return (customer_id, id) of a resource in the directory. Raises NotFound if it is not the caller's."""
        entry = await bank.directory.find(kind, value)
        if (
            entry is None
            or entry.partner_id != self.partner_id
            or self.only_customer_id not in {None, entry.customer_id}
        ):
            raise NotFound(f"There is no such {kind.replace('_', ' ')}.")
        return entry.customer_id, entry.object_id

    async def pocket(self, bank: Bank, pocket_id: UUID, customer_id: UUID | None = None) -> tuple[UUID, UUID]:
        """Return (customer_id, pocket_id), from memory. Raises NotFound if it is not the caller's.

        With a `customer_id` it must be a pocket of this customer.
        """
        required_owner = None if customer_id is None else await self.owner(bank, customer_id)
        owner, own_id = await self.owned(bank, "pocket", pocket_id)
        if required_owner not in {None, owner}:
            raise NotFound("There is no such pocket.")
        return owner, own_id

    async def filtered_owner(
        self, bank: Bank, customer_id: UUID | None, pocket_id: UUID | None = None, *, or_else: str = ""
    ) -> UUID:
        """Return the customer that the filters of a list name. Raises NotFound, InvalidInput if they name none.

        `or_else` adds to that error what may be sent instead of `customer_id`.
        """
        owner = self.only_customer_id or customer_id
        if pocket_id is not None:
            owner, _ = await self.pocket(bank, pocket_id, owner)
        if owner is None:
            raise InvalidInput.at("query", "customer_id", msg=f"is needed{or_else}", kind="missing")
        if (await self.customer(bank, owner)).customer_id != (customer_id or owner):
            raise NotFound("There is no such customer.")
        return owner


def _parse_as_of(name: str, text: str) -> date:
    return _read_as_of(text, ("query", name))


def _read_as_of(text: str, place: tuple[str, ...]) -> date:
    try:
        return parse_day(text) if is_day(text) else parse_instant(text.replace(" ", "+"))
    except ValueError:
        wrong = f"must be a business day or a date-time with its offset, {DAY_RANGE}"
        raise InvalidInput.at(*place, msg=wrong, kind="date_parsing") from None


AS_OF = Parameter(
    "as_of",
    "as_of",
    _parse_as_of,
    many=False,
    default=None,
    schema={"type": "string"},
    description="Answers what was answered at this date-time with its offset, or at the close of this business day.",
    indexed=False,
)
"""The parameter of reads that answer what they answered before, by the rights of now."""
NOT_YET = "must not be later than now"
AnyCall = TypeVar("AnyCall", bound=Call)


def call_as_of(call: AnyCall, sent: Mapping[str, Sequence[str]], calendars: Calendars) -> AnyCall:
    """Return the call at the instant that a query names, if any. Raises InvalidInput for one that has not come."""
    given: date | None = AS_OF.read(sent)
    if given is None:
        return call
    at = _instant_of(given, calendars, now=call.now, place=("query", AS_OF.name))
    return msgspec.structs.replace(call, now=at, as_of=at)


def instant_named(text: str | None, calendars: Calendars, now: datetime, *place: str) -> datetime | None:
    """Return the instant that a field names as `as_of` does, if any. Raises InvalidInput for one that has not come."""
    return None if text is None else _instant_of(_read_as_of(text, place), calendars, now=now, place=place)


def _instant_of(given: date, calendars: Calendars, *, now: datetime, place: tuple[str, ...]) -> datetime:
    at = given if isinstance(given, datetime) else calendars.closes_at(calendars.settlement_on_or_before(given))
    if at > now:
        raise InvalidInput.at(*place, msg=f"{NOT_YET}, {now.isoformat()}")
    return at
