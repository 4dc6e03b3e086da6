"""The contents of audit entries and how they are chained. Pure."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.types import Actor, Origin
from billfold.platform import ids
from billfold.platform.crypto import Vault, associated_data, is_sealed_text
from billfold.platform.database.connection import Connection
from billfold.platform.dates import iso_z
from billfold.platform.errors import InvariantError
from billfold.platform.text import redact_numbers

Outcome = Literal["SUCCESS", "FAILURE"]


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to record: an action is `<resource>.<verb>`, details are small JSON."""

    customer_id: UUID
    origin: Origin
    action: str
    resource_type: str
    resource_id: UUID | str | None = None
    outcome: Outcome = "SUCCESS"
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the log: `entry_no` counts per customer from 1, `details` is JSON as it is kept.

    `hash` is the id of a key and the HMAC of the entry before and of everything here.
    """

    customer_id: UUID
    entry_no: int
    entry_id: UUID
    recorded_at: datetime
    actor: Actor
    member_id: UUID | None
    actor_name: str
    client_id: str | None
    action: str
    resource_type: str
    resource_id: str | None
    outcome: Outcome
    ip_address: str | None
    user_agent: str | None
    details: str
    hash: bytes = b""


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a customer to read: from `since` (included) to `until` (not included)."""

    customer_id: UUID
    member_id: UUID | None = None
    resource_types: list[str] | None = None
    since: datetime | None = None
    until: datetime | None = None


class ChainHead(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a customer's chain when it was sealed; `hash` in hexadecimal."""

    customer_id: UUID
    entry_no: int
    hash: str


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of all chains that moved since the seal before, as one signed line of JSON.

    `previous` is the SHA-256 of the line before, in hexadecimal; the first has none.
    """

    seal_no: int
    sealed_at: datetime
    previous: str
    heads: tuple[ChainHead, ...]


CHAIN_START: Final = b""
"""The predecessor of a customer's first entry."""
REDACTED: Final = "[not kept]"
PURPOSE: Final = "audit entry"
_ACTION = re.compile(r"[a-z_]+\.[a-z_]+")
_SECRET_NAMES = re.compile(
    r"secret|password|passphrase|token|assertion|authorization header|cookie|private|cvv|cvc|otp"
    r"|social security|tax id|identification number|card number|code verifier|\b(pin|pan|ssn)\b"
)
_PERSONAL_NAMES = frozenset({"email", "phone_number"})
_EMAIL = re.compile(r"[^@\s]@[^@\s]")
_TEXT_CHARS_MAX = 500
_DETAILS_BYTES_MAX = 8_192
_IP_CHARS_MAX, _AGENT_CHARS_MAX, _NAME_CHARS_MAX = 64, 400, 200
_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_SIGNED = AuditEntry.__struct_fields__[:-1]
"""All columns but the hash."""


def build_entry(
    entry: NewEntry, entry_no: int, previous: bytes, *, at: datetime, name: str, vault: Vault
) -> AuditEntry:
    """Return the row of an entry, chained to the one before by its hash."""
    if _ACTION.fullmatch(entry.action) is None:
        raise InvariantError(f"{entry.action!r} is not an action")
    origin, entry_id = entry.origin, ids.new()
    row = AuditEntry(
        customer_id=entry.customer_id,
        entry_no=entry_no,
        entry_id=entry_id,
        recorded_at=at,
        actor=origin.kind,
        member_id=origin.member_id,
        actor_name=_truncate(name, _NAME_CHARS_MAX) or "",
        client_id=origin.client_id,
        action=entry.action,
        resource_type=entry.resource_type,
        resource_id=None if entry.resource_id is None else str(entry.resource_id),
        outcome=entry.outcome,
        ip_address=_truncate(origin.ip_address, _IP_CHARS_MAX),
        user_agent=_truncate(origin.user_agent, _AGENT_CHARS_MAX),
        details=_details(_seal(redact(entry.details), vault, _place(entry.customer_id, entry_id))),
    )
    return msgspec.structs.replace(row, hash=vault.compute_mac(signed_message(previous, row), PURPOSE))


def signed_message(previous: bytes, row: AuditEntry) -> bytes:
    """Return what the hash of a row vouches for: the hash before it and all its columns."""
    return _pack((previous, *(_msgpack_value(getattr(row, name)) for name in _SIGNED)))


def _msgpack_value(value: object) -> object:
    if isinstance(value, UUID):
        return value.bytes
    return iso_z(value) if isinstance(value, datetime) else value


def is_chained_to(previous: bytes, row: AuditEntry, vault: Vault) -> bool:
    """Return whether a row is as it was written, right after the one whose hash is given."""
    return vault.verify_mac(row.hash, signed_message(previous, row), PURPOSE)


def redact(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Return a value without what no log may hold: secrets, card numbers and personal numbers.

    This is the second line of defense: callers that record an entry leave them out themselves.
    """
    if _SECRET_NAMES.search(name.lower().replace("_", " ").replace("-", " ")):
        return REDACTED
    match value:
        case Mapping():
            return {str(key): redact(each, str(key)) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redact(each) for each in value]
        case str():
            return _truncate(redact_numbers(value, REDACTED), _TEXT_CHARS_MAX)
        case _:
            return value


def open_details(row: AuditEntry, vault: Vault) -> dict[str, Any]:
    """Return the details of an entry with its contact details as they were given.

    A text that does not open is left as it is stored; the hash tells whether a row was altered.
    """
    opened: dict[str, Any] = _open(msgspec.json.decode(row.details), vault, _place(row.customer_id, row.entry_id))
    return opened


def _seal(value: Any, vault: Vault, place: bytes, *, name: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Return a value with the texts sealed that are, or hold, an e-mail address or a telephone number.

    A text that looks sealed is sealed too, so that nothing a client sends is ever opened.
    """
    match value:
        case dict():
            return {key: _seal(each, vault, place, name=key) for key, each in value.items()}
        case list():
            return [_seal(each, vault, place, name=name) for each in value]
        case str() if name in _PERSONAL_NAMES or _EMAIL.search(value) or is_sealed_text(value):
            return vault.seal_text(value, place)
        case _:
            return value


def _open(value: Any, vault: Vault, place: bytes) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return {key: _open(each, vault, place) for key, each in value.items()}
        case list():
            return [_open(each, vault, place) for each in value]
        case str() if is_sealed_text(value):
            with suppress(InvariantError):
                return vault.open_text(value, place)
    return value


def _place(customer_id: UUID, entry_id: UUID) -> bytes:
    return associated_data("audit_entry", "details", entry_id, tenant_id=customer_id)


def _details(details: Mapping[str, Any]) -> str:
    text = _encode(details)
    if len(text) > _DETAILS_BYTES_MAX:
        text = _encode({"left_out": f"details of {len(text)} bytes"})
    return text.decode()


def _truncate(text: str | None, chars_max: int) -> str | None:
    # PostgreSQL keeps no zero characters.
    return None if text is None else text.replace("\0", "")[:chars_max]


RESOURCES = frozenset({"member", "program", "subscription", "partner_key"})
"""The resource types of entries about these rows."""


class RightsTable(NamedTuple):
    """A table: whose log covers its rows, the resource type, the proven columns, and how entries find its rows."""

    name: str
    key: str
    log: str
    named: str
    proven: str
    rows: str
    found: str

    def select(self, condition: str = "true") -> str:
        """Return the statement of the rows with their fingerprints."""
        return f"""
          SELECT '{self.name}' AS name, {self.log} AS customer_id, {self.key}::text AS id, {self.named} AS named,
                 encode(sha256(convert_to(jsonb_build_array({self.proven})::text, 'UTF8')), 'hex') AS fingerprint
            FROM {self.rows} WHERE {condition}"""


RIGHTS = (
    RightsTable(
        "membership",
        key="m.member_id",
        log="m.customer_id",
        named="m.member_id::text",
        proven="m.user_id, m.role, m.status",
        rows="membership m",
        found="m.member_id = ANY($1)",
    ),
    RightsTable(
        "oauth_client",
        key="c.client_id",
        log="coalesce(c.customer_id, c.owner_id)",
        named="coalesce(c.member_id::text, c.client_id)",
        proven="""c.scopes, c.grant_types, c.redirect_uris, c.profile, c.dpop_bound, c.requires_nonce,
                  c.requires_signature, (SELECT jsonb_agg(jsonb_build_array(k.key_id, k.algorithm, k.public_pem)
                                                          ORDER BY k.key_id COLLATE "C")
                                           FROM client_key k WHERE k.client_id = c.client_id)""",
        rows="oauth_client c",
        found="(c.member_id = ANY($1) OR c.client_id = ANY($2))",
    ),
    RightsTable(
        "subscription",
        key="s.subscription_id",
        log="coalesce(s.customer_id, p.own_customer_id)",
        named="s.subscription_id::text",
        proven="s.partner_id, s.customer_id, s.url",
        rows="subscription s LEFT JOIN partner p USING (partner_id)",
        found="s.subscription_id = ANY($1)",
    ),
    RightsTable(
        "partner_key",
        key="k.key_id",
        log="p.own_customer_id",
        named="k.key_id",
        proven="k.user_id, k.algorithm, k.public_pem",
        rows="partner_key k JOIN partner_user u USING (user_id) JOIN partner p USING (partner_id)",
        found="k.key_id = ANY($2)",
    ),
)
_FIND = " UNION ALL ".join(each.select(f"{each.found} AND {each.log} = ANY($3)") for each in RIGHTS)


async def prove_rights(conn: Connection, entries: Sequence[NewEntry]) -> list[NewEntry]:
    """Return the entries, those about such rows with their fingerprints as the transaction leaves them."""
    about = [each for each in entries if each.outcome == "SUCCESS" and each.resource_type in RESOURCES]
    if not about:
        return list(entries)
    names = [str(each.resource_id) for each in about if each.resource_id is not None]
    ids = [found for each in names if (found := _as_uuid(each)) is not None]
    proofs: dict[tuple[UUID, str], dict[str, dict[str, str]]] = {}
    for row in await conn.fetch(_FIND, ids, names, [each.customer_id for each in about]):
        tables = proofs.setdefault((row["customer_id"], row["named"]), {})
        tables.setdefault(row["name"], {})[row["id"]] = row["fingerprint"]
    return [_with_proofs(each, proofs.get((each.customer_id, str(each.resource_id)))) for each in entries]


def _with_proofs(entry: NewEntry, proofs: dict[str, dict[str, str]] | None) -> NewEntry:
    if not proofs or entry.outcome != "SUCCESS" or entry.resource_type not in RESOURCES:
        return entry
    details: dict[str, Any] = {**entry.details, "proves": {**entry.details.get("proves", {}), **proofs}}
    return msgspec.structs.replace(entry, details=details)


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
