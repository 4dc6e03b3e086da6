"""Notes as stored: sealed, and found by blind indexes."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.commands import Annotate
from billfold.accounts.notes.schemas import ChangedNote, NewNote, NoteQuery
from billfold.accounts.notes.types import ShownNote
from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.data_keys.notes import read_notes
from billfold.http.caller import Call
from billfold.ledger.bank import Bank
from billfold.ledger.book.notes import Note, NoteRow
from billfold.platform.database.connection import Connection
from billfold.platform.database.rows import References, Table
from billfold.platform.errors import InvalidInput, NotFound

_notes = Table(NoteRow)
_REFERENCED = f"""
{_notes.select} WHERE customer_id = ANY($1::uuid[]) AND object_id = ANY($2::uuid[])
 UNION ALL
{_notes.select} WHERE customer_id = ANY($1::uuid[]) AND external_key = ANY($2::uuid[])
"""
_BY_KEY = "SELECT object_id FROM object_note WHERE customer_id = $1 AND external_key = $2"
_BY_TERMS = "SELECT object_id FROM object_note WHERE customer_id = $1 AND terms @> $2::bigint[] LIMIT $3"
_NOTED_MAX = 5_000
_HAS_TERMS = """(${number}::bigint[] IS NULL OR EXISTS (SELECT 1 FROM object_note n
        WHERE n.customer_id = {table}.customer_id AND n.object_id = {table}.{key} AND n.terms @> ${number}))"""
_BETWEEN = """{alias}created_at >= coalesce(${first}::timestamptz, '-infinity')
   AND {alias}created_at < coalesce(${second}::timestamptz, 'infinity')"""
_KEY_BYTES, _TERM_BYTES = 16, 8
_FIELD: Final = PartyField.TEXT

Shown = TypeVar("Shown", bound=ShownNote)
Item = TypeVar("Item")


def has_terms(table: str, key: str, number: int) -> str:
    """Return the SQL condition that a row has all metadata with these terms, the parameter `number`; None for any."""
    return _HAS_TERMS.format(table=table, key=key, number=number)


def created_between(first: int, alias: str = "") -> str:
    """Return the SQL condition on the time of a row: from the parameter `first` on, before the next one."""
    return _BETWEEN.format(alias=alias, first=first, second=first + 1)


def amount_between(first: int, alias: str = "") -> str:
    """Return the SQL condition on the amount of a row: from the parameter `first` to the next one, None for any."""
    low, high = f"${first}", f"${first + 1}"
    return f"({low}::bigint IS NULL OR {alias}amount >= {low}) AND ({high}::bigint IS NULL OR {alias}amount <= {high})"


def payment_filters(table: str, key: str, first: int) -> str:
    """Return the SQL condition of `PaymentFilters.values` and the terms of a note, parameters from `first` on."""
    payee, terms = range(first + 4, first + 6)
    return f"""{created_between(first, f"{table}.")} AND {amount_between(first + 2, f"{table}.")}
   AND (${payee}::uuid IS NULL OR {table}.counterparty_id = ${payee})
   AND {has_terms(table, key, terms)}"""


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the notes of these objects, and the holders of external ids, as (customer, object, note)."""
    rows = await _notes.all(conn, _REFERENCED, customer_ids, ids)
    return [(row.customer_id, row.object_id, row) for row in rows]


async def note_fields(
    bank: Bank, owner: UUID, kind: str, given: NewNote | ChangedNote, *, noted: UUID | None = None
) -> dict[str, Any]:
    """Return the fields of a command that attaches what a request gives, or none; `noted` is an object that exists."""
    if given.external_id is UNSET and given.metadata is UNSET:
        return {}
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    external_id: str | UnsetType | None = given.external_id
    key = None
    if isinstance(external_id, str):
        key, external_id = _key_of(data_key, kind, external_id), _FIELD.seal(data_key, external_id)
    metadata: str | UnsetType | None = UNSET
    terms: tuple[int, ...] = ()
    if given.metadata is not UNSET:
        terms = tuple(_terms_of(data_key, kind, given.metadata))
        metadata = None
        if given.metadata:
            metadata = _FIELD.seal(data_key, msgspec.json.encode(given.metadata, order="sorted").decode())
    return {"attached": Note(external_id=external_id, key=key, metadata=metadata, terms=terms), "noted": noted}


async def annotate(
    caller: Call, bank: Bank, owner: UUID, *, kind: str, object_id: UUID, given: NewNote | ChangedNote, step: int = 0
) -> None:
    """Change the note of an object, which the caller has found among the customer's, as far as one is given.

    Raises Refused external-id-taken.
    """
    note = await note_fields(bank, owner, kind, given, noted=object_id)
    if note:
        await bank.engine.submit(Annotate(**caller.command_fields(owner, step=step), **note, kind=kind))


async def show_notes(bank: Bank, shown: Mapping[tuple[UUID, UUID], Shown]) -> list[Shown]:
    """Add the notes to objects for display, by customer and id; what was destroyed with its key is left out."""
    if shown:
        customers, ids = (list(dict.fromkeys(each)) for each in zip(*shown, strict=True))
        for place, note in (await read_notes(bank.pool, bank.ports[DataKeys], customers, ids)).items():
            if (each := shown.get(place)) is not None:
                each.external_id, each.metadata = note.get("external_id"), note.get("metadata", {})
    return list(shown.values())


async def terms_of(bank: Bank, owner: UUID, kind: str, query: NoteQuery) -> list[int] | None:
    """Return the terms that a list is filtered by, None for no filter."""
    if not query.metadata:
        return None
    return _terms_of(await bank.ports[DataKeys].of(bank.pool, owner), kind, query.metadata)


async def list_noted(bank: Bank, owner: UUID, kind: str, query: NoteQuery) -> list[UUID] | None:
    """Return the ids of the objects that a query for notes finds, None if it does not ask.

    For lists of objects that are not the owner's own: the customers of a partner. Raises InvalidInput for too many.
    """
    if query.external_id is not None:
        key = _key_of(await bank.ports[DataKeys].of(bank.pool, owner), kind, query.external_id)
        return [row["object_id"] for row in await bank.pool.fetch(_BY_KEY, owner, key)]
    if (terms := await terms_of(bank, owner, kind, query)) is None:
        return None
    found = await bank.pool.fetch(_BY_TERMS, owner, terms, _NOTED_MAX + 1)
    if len(found) > _NOTED_MAX:
        raise InvalidInput.at("query", "metadata", msg=f"finds more than {_NOTED_MAX}: add a key")
    return [row["object_id"] for row in found]


async def find_noted(
    bank: Bank, owner: UUID, kind: str, external_id: str, *, get: Callable[[UUID], Awaitable[Item]]
) -> list[Item]:
    """Return the object with this external id, which `get` reads, or nothing."""
    key = _key_of(await bank.ports[DataKeys].of(bank.pool, owner), kind, external_id)
    object_id = await bank.pool.fetchval(_BY_KEY, owner, key)
    try:
        return [] if object_id is None else [await get(object_id)]
    except NotFound:  # a payment of another rail
        return []


def sealed_note(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of `note_fields` as a stored request holds them, or none."""
    note: Note | None = fields.get("attached")
    return {} if note is None else {"external_id": note.external_id, "metadata": note.metadata}


def _key_of(data_key: DataKey, kind: str, external_id: str) -> UUID:
    return UUID(bytes=data_key.digest(f"external_id {kind} {external_id}".encode())[:_KEY_BYTES])


def _terms_of(data_key: DataKey, kind: str, metadata: Mapping[str, str]) -> list[int]:
    plain: Collection[bytes] = [f"metadata {kind} {key} {value}".encode() for key, value in sorted(metadata.items())]
    return [int.from_bytes(data_key.digest(each)[:_TERM_BYTES], signed=True) for each in plain]
