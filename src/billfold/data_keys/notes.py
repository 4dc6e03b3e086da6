"""Reads notes: the ids and metadata of integrators, sealed with the key of the customer that they belong to."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKey, DataKeys, PartyField
from billfold.platform.database.connection import Db

_OF_OBJECTS = """
SELECT customer_id, object_id, external_id, metadata FROM object_note
 WHERE customer_id = ANY($1::uuid[]) AND object_id = ANY($2::uuid[])
"""


async def read_notes(
    conn: Db, keys: DataKeys, customer_ids: Collection[UUID], object_ids: Collection[UUID]
) -> dict[tuple[UUID, UUID], dict[str, Any]]:
    """Return the notes of these objects of these customers, by both ids, without what was destroyed with its key."""
    rows = await conn.fetch(_OF_OBJECTS, customer_ids, object_ids)
    ring = await keys.load(conn, {row["customer_id"] for row in rows}) if rows else {}
    return {
        (customer_id, object_id): open_note(ring[customer_id], {"external_id": external_id, "metadata": metadata})
        for customer_id, object_id, external_id, metadata in rows
    }


def open_note(data_key: DataKey | None, sealed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a note that are given and not destroyed."""
    opened = {
        name: text
        for name in ("external_id", "metadata")
        if isinstance(sealed.get(name), str) and (text := PartyField.TEXT.open(data_key, sealed[name])) is not None
    }
    return opened | ({"metadata": msgspec.json.decode(opened["metadata"])} if "metadata" in opened else {})
