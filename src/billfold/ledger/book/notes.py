"""Notes: the own id and the metadata that an integrator attaches to an object of a customer.

Everything is sealed before it reaches a command. `key` and `terms` are blind indexes under the customer's data key, so
nothing can be looked up when the key is destroyed.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.ledger.book.book import Book
from billfold.ledger.context import Context
from billfold.platform.database.rows import Row
from billfold.platform.errors import Refused
from billfold.platform.ids import command_id

TRANSFER: Final = "transfer"
"""The kind of every payment: on-us transfers, wires and ACH originations share the ids of an integrator."""


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of a note. What is not given stays; None removes the id, and all metadata.

    `key` stands for the external id, `terms` for each key of the metadata with its value.
    """

    external_id: str | UnsetType | None = UNSET
    key: UUID | None = None
    metadata: str | UnsetType | None = UNSET
    terms: tuple[int, ...] = ()


class NoteRow(Row, frozen=True, kw_only=True):
    """The note of an object as stored."""

    table = "object_note"
    key_column = "object_id"
    noun = "note"
    fingerprinted = True

    customer_id: UUID
    object_id: UUID
    kind: str
    external_id: str | None = None
    external_key: UUID | None = None
    metadata: str | None = None
    terms: list[int]
    updated_at: datetime


def note_reference(object_id: UUID) -> UUID:
    """Return the id under which a command references the note of an object: rules know the object under its own."""
    return command_id("note", object_id)


def attach_note(
    book: Book, kind: str, object_id: UUID, *, note: Note, ctx: Context, is_new: bool | None = None
) -> None:
    """Attach a note to an object of the book's customer, or change it; a payment is new unless it is said not to be.

    The command references the note of an object that exists, and the holder of the external id.
    Refuses: external-id-taken, duplicate-id.
    """
    holder: NoteRow | None = book.referenced.get(note.key) if note.key else None
    if holder is not None and holder.object_id != object_id:
        raise Refused(
            "external-id-taken", f"Another {kind} has this external_id: {holder.object_id}.", id=str(holder.object_id)
        )
    place = note_reference(object_id)
    former: NoteRow | None = book.referenced.get(place)
    is_new = kind == TRANSFER if is_new is None else is_new
    if former is not None and (is_new or former.kind != kind):
        raise Refused("duplicate-id", "Another object already has this id.")
    changes: dict[str, object] = {"updated_at": ctx.now}
    if note.external_id is not UNSET:
        changes |= {"external_id": note.external_id, "external_key": note.key}
    if note.metadata is not UNSET:
        changes |= {"metadata": note.metadata, "terms": list(note.terms)}
    if former is None:
        row = NoteRow(customer_id=book.customer_id, object_id=object_id, kind=kind, terms=[], updated_at=ctx.now)
        row = msgspec.structs.replace(row, **changes)
        book.draft.add(row)
    else:
        row = msgspec.structs.replace(former, **changes)
        book.change(NoteRow, object_id, **changes)
        if former.external_key is not None:
            book.put(book.referenced, former.external_key, None)
    book.put(book.referenced, place, row)
    if row.external_key is not None:
        book.put(book.referenced, row.external_key, row)
    book.keep_fingerprint(row)
