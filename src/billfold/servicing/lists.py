"""Lists of the whole bank and of one customer: each is one statement by an index, declared with what it shows."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple
from uuid import UUID

from asyncpg import Record
from typing_extensions import override

from billfold.dual_control.store import FreezeSubject
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import BY_CREATION, BY_OPENING, KeysetList, SortKey

Shown = Literal["text", "words", "money", "moment", "status", "action"]


class Column(NamedTuple):
    """A column of a table: its heading, the value of a row, how it is shown, and a value in small print below."""

    label: str
    name: str
    shown: Shown = "text"
    below: str = ""
    below_shown: Shown = "text"


class Listing(NamedTuple):
    """A list with its table. $1 is its owner: a partner of the bank or none, or a customer.

    `rows` selects for a search, which appends its condition. `link` is the page of a row; `freezes` is the subject of
    a freeze and the column of its id.
    """

    title: str
    listed: KeysetList[Record]
    columns: tuple[Column, ...]
    rows: str = ""
    link: str = ""
    freezes: tuple[FreezeSubject, str] | None = None

    @property
    def one(self) -> str:
        """The name of a row."""
        return self.title.replace("ries", "rys").removesuffix("s")

    def page_of(self, row: Record) -> str:
        """Return the page of a row, or nothing."""
        return self.link.format_map(dict(row))


_NAMES = "SELECT customer_id, name FROM customer WHERE customer_id = ANY($1::uuid[])"


async def names_of(conn: Db, customer_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of customers by their ids."""
    return {row["customer_id"]: row["name"] for row in await conn.fetch(_NAMES, list(customer_ids))}


def _as_is(row: Record) -> Record:
    return row


_OWNERS = "t JOIN customer c USING (customer_id) LEFT JOIN partner p ON p.partner_id = t.partner_id"


class _OfBank(KeysetList[Record]):
    """A list of all customers or of a partner's, newest first: the rows of a page by an index, then their owners."""

    def __init__(
        self, selected: str, table: str, order: Mapping[str, str], condition: str = "true", joined: str = _OWNERS
    ) -> None:
        def of(owner: str) -> str:
            rows = f"(SELECT * FROM {table} WHERE {condition} AND {owner} AND {{page}})"
            return f"SELECT {selected} FROM {rows} {joined} {{order}}"

        super().__init__(of("$1::uuid IS NULL AND partner_id IS NOT NULL"), _as_is, **order)
        self.of_partner = KeysetList(of("partner_id = $1"), _as_is, **order)

    @override
    async def placed_rows(self, conn: Db, *values: object, **place: Any) -> list[tuple[Record, SortKey]]:
        read = super().placed_rows if values[0] is None else self.of_partner.placed_rows
        return await read(conn, *values, **place)


def _of_customer(selected: str, table: str, order: Mapping[str, str], condition: str = "true") -> KeysetList[Record]:
    return KeysetList(
        f"SELECT {selected} FROM {table} t WHERE customer_id = $1 AND {condition} AND {{page}}", _as_is, **order
    )


def _found(selected: str, table: str) -> str:
    return f"SELECT {selected} FROM {table} {_OWNERS} WHERE "


_CUSTOMER = "c.customer_id, c.name, c.type, c.account_status, c.opened_at, p.name AS partner, c.written_no"
_WIRE = """t.customer_id, t.wire_id, t.status, t.reason, t.counterparty_name, t.created_at, t.written_no,
  CASE t.direction WHEN 'INCOMING' THEN t.amount ELSE -t.amount END AS amount, coalesce(t.imad, t.uetr) AS reference"""
_ACH = """t.customer_id, t.ach_id, t.status, t.party_name, t.created_at, t.written_no, t.trace_number AS reference,
  CASE (t.direction = 'CREDIT') = (t.way = 'ORIGINATION') WHEN true THEN -t.amount ELSE t.amount END AS amount,
  coalesce(t.return_code, t.reason) AS reason"""
_CARD = """t.customer_id, t.card_id, t.name, t.status, initcap(t.type) || ' card ending ' || t.last_four AS ending,
  t.created_at, t.written_no"""
_OWNED = ", c.name AS customer, p.name AS partner"
_MEMBER = """m.customer_id, m.member_id, u.first_name || ' ' || u.last_name AS name, m.role, c.name AS customer,
  CASE u.status WHEN 'ACTIVE' THEN m.status ELSE u.status END AS status, u.last_login_at, m.created_at"""
_MEMBERS = "membership m JOIN user_account u USING (user_id) JOIN customer c ON c.customer_id = m.customer_id"
_OWNER = Column("Customer", "customer", below="partner")
_AMOUNT, _STATUS = Column("Amount", "amount", "money"), Column("Status", "status", "status", "reason", "words")

CUSTOMERS = Listing(
    "Customers",
    _OfBank(_CUSTOMER, "customer", BY_OPENING, "role <> 'house'", "c JOIN partner p USING (partner_id)"),
    (
        Column("Name", "name", below="partner"),
        Column("Kind", "type", "words"),
        Column("Since", "opened_at", "moment"),
        Column("Status", "account_status", "status"),
    ),
    f"SELECT {_CUSTOMER} FROM customer c LEFT JOIN partner p USING (partner_id) WHERE c.role <> 'house' AND ",
    "/bank/customers/{customer_id}",
)
USERS = Listing(
    "Users",
    KeysetList(
        f"""SELECT {_MEMBER} FROM (SELECT * FROM membership WHERE $1::uuid IS NULL AND {{page}}) m
  JOIN user_account u USING (user_id) JOIN customer c ON c.customer_id = m.customer_id {{order}}""",
        _as_is,
        created_at="timestamptz",
        member_id="uuid",
    ),
    (
        Column("Name", "name"),
        Column("Customer", "customer", below="role", below_shown="words"),
        Column("Last sign-in", "last_login_at", "moment"),
        Column("Status", "status", "status"),
    ),
    f"SELECT {_MEMBER} FROM {_MEMBERS} WHERE ",
    "/bank/customers/{customer_id}",
)
_WIRE_COLUMNS = (
    Column("To or from", "counterparty_name", below="reference"),
    Column("Requested", "created_at", "moment"),
    _STATUS,
    _AMOUNT,
)
_ACH_COLUMNS = (Column("To or from", "party_name", below="reference"), *_WIRE_COLUMNS[1:])
_CARD_COLUMNS = (
    Column("Name", "name", below="ending"),
    Column("Since", "created_at", "moment"),
    Column("Status", "status", "status"),
)
_BY_CARD = (FreezeSubject.CARD, "card_id")
WIRES = Listing(
    "Wires",
    _OfBank(_WIRE + _OWNED, "wire", BY_CREATION),
    (_WIRE_COLUMNS[0], _OWNER, *_WIRE_COLUMNS[1:]),
    _found(_WIRE + _OWNED, "wire"),
    "/bank/customers/{customer_id}/wire/{wire_id}",
)
ACH = Listing(
    "ACH entries",
    _OfBank(_ACH + _OWNED, "ach_entry", BY_CREATION, "way = 'ORIGINATION'"),
    (_ACH_COLUMNS[0], _OWNER, *_ACH_COLUMNS[1:]),
    _found(_ACH + _OWNED, "ach_entry"),
    "/bank/customers/{customer_id}/ach-entry/{ach_id}",
)
CARDS = Listing(
    "Cards",
    _OfBank(_CARD + _OWNED, "card", BY_CREATION),
    (_CARD_COLUMNS[0], _OWNER, *_CARD_COLUMNS[1:]),
    _found(_CARD + _OWNED, "card"),
    "/bank/customers/{customer_id}#cards",
)
OF_BANK: Mapping[str, Listing] = {"customers": CUSTOMERS, "users": USERS, "wires": WIRES, "ach": ACH, "cards": CARDS}
"""The lists of the bank, by the names in their addresses."""

_PAYMENT = """t.customer_id, t.entry_no, t.posting_no, t.pocket_id, t.title, t.description, t.booked_at,
  CASE t.direction WHEN 'CREDIT' THEN t.amount ELSE -t.amount END AS amount, p.name AS pocket"""
OF_CUSTOMER: Mapping[str, Listing] = {
    "wires": Listing("Wires", _of_customer(_WIRE, "wire", BY_CREATION), _WIRE_COLUMNS, link=WIRES.link),
    "ach": Listing(
        "ACH entries",
        _of_customer(_ACH, "ach_entry", BY_CREATION, "way = 'ORIGINATION'"),
        _ACH_COLUMNS,
        link=ACH.link,
    ),
    "transactions": Listing(
        "Transactions",
        KeysetList(
            f"""SELECT {_PAYMENT} FROM pocket p CROSS JOIN LATERAL (
  SELECT * FROM transaction x WHERE x.customer_id = $1 AND x.pocket_id = p.pocket_id AND {{page}}) t
 WHERE p.customer_id = $1 {{order}}""",
            _as_is,
            entry_no="bigint",
            posting_no="smallint",
            pocket_id="uuid",
        ),
        (Column("What", "title", below="pocket"), Column("Booked", "booked_at", "moment"), _AMOUNT),
        link="/bank/ledger?customer={customer_id}&id=entry+{entry_no}",
    ),
    "cards": Listing("Cards", _of_customer(_CARD, "card", BY_CREATION), _CARD_COLUMNS, freezes=_BY_CARD),
    "disputes": Listing(
        "Disputes",
        _of_customer(
            "dispute_id, merchant, reason, status, -amount AS amount, created_at, written_no",
            "card_dispute",
            BY_CREATION,
        ),
        (
            Column("Merchant", "merchant", below="reason", below_shown="words"),
            Column("Opened", "created_at", "moment"),
            Column("Status", "status", "status"),
            Column("Amount", "amount", "money"),
        ),
        link="/bank/disputes/{dispute_id}",
    ),
    "payees": Listing(
        "Payees",
        _of_customer(
            "coalesce(counterparty_name->>'business_name', concat_ws(' ', counterparty_name->>'first_name',"
            " counterparty_name->>'last_name')) AS name, type, verification->>'status' AS status,"
            " created_at, written_no",
            "counterparty",
            BY_CREATION,
        ),
        (Column("Name", "name", below="type", below_shown="words"), *_CARD_COLUMNS[1:]),
    ),
    "documents": Listing(
        "Documents",
        _of_customer("document_id, type, status, exception_reason, created_at", "document", {"document_id": "uuid"}),
        (
            Column("Document", "type", "words"),
            Column("Requested", "created_at", "moment"),
            Column("Status", "status", "status", "exception_reason"),
        ),
        link="/bank/reviews/document/{document_id}",
    ),
    "holds": Listing(
        "Holds",
        _of_customer("hold_id, cause, until, amount", "hold", {"hold_id": "uuid"}),
        (Column("Cause", "cause", "words"), Column("Until", "until", "moment"), _AMOUNT),
    ),
    "freezes": Listing(
        "Freezes and movements",
        KeysetList(
            """SELECT proposal_id, proposed_at, reason, status, proposed_by, decided_by, CASE WHEN subject IS NULL
  THEN 'Movement of money' ELSE CASE WHEN freezes THEN 'Freeze' ELSE 'Unfreeze' END || ' of the ' ||
  replace(lower(subject), 'pocket', 'Pocket') END AS what FROM freeze_proposal WHERE owner_id = $1 AND {page}""",
            _as_is,
            proposed_at="timestamptz",
            proposal_id="uuid",
        ),
        (
            Column("What", "what", below="reason"),
            Column("Proposed", "proposed_at", "moment", "proposed_by"),
            Column("Status", "status", "status", "decided_by"),
        ),
        link="/bank/freezes/{proposal_id}",
    ),
    "events": Listing(
        "Events",
        _of_customer("customer_id, event_no, event_id, kind, raised_at", "event", {"event_no": "bigint"}),
        (Column("Event", "kind"), Column("Raised", "raised_at", "moment")),
        link="/bank/ledger?customer={customer_id}&id=event+{event_no}",
    ),
    "audit": Listing(
        "Audit log",
        _of_customer(
            "recorded_at, entry_no, actor_name, action, resource_type, outcome, ip_address",
            "audit_entry",
            {"recorded_at": "timestamptz", "entry_no": "bigint"},
        ),
        (
            Column("What happened", "action", "action", "actor_name"),
            Column("Recorded", "recorded_at", "moment", "ip_address"),
            Column("Outcome", "outcome", "status"),
        ),
    ),
}
"""The lists of one customer, by the names in their addresses, in the order of its page."""
