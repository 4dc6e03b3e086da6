"""Rows as they were: a change of a row that `keeps_former` leaves its former state in `former_row`."""


def as_was(table: str) -> str:
    """Return the composite of a row as it was, in a statement with `joined_as_was`.

    That is its state before the first change after the instant, or else its present one. Whether it was there yet must
    be told by a column that never changes.
    """
    return f"(coalesce(w.was, {table}))"


def as_json(row: str, *, columns: bool | tuple[str, ...]) -> str:
    """Return the `former_row.row` of a row as it is: whole, or some columns; a read takes the others as they are."""
    if not isinstance(columns, tuple):
        return f"to_json({row})"
    pairs = ", ".join(f"'{name}', {row}.{name}" for name in columns)
    return f"json_build_object({pairs})"


def joined_as_was(table: str, key: str, at: str, *, of: tuple[str, str] | None = None) -> str:
    """Return the join that adds the former state of a row of a table at an instant, an SQL value, for `as_was`.

    `of` are the customer and the id if they are not to be those of the row: a cluster sends parameters to their shard.
    """
    customer, object_id = of or (f"{table}.customer_id", f"{table}.{key}")
    return f"""LEFT JOIN LATERAL (
    SELECT json_populate_record({table}, f.row) AS was FROM (
      SELECT row FROM former_row
       WHERE customer_id = {customer} AND kind = '{table}' AND object_id = {object_id} AND until > {at}
       ORDER BY until LIMIT 1) f) w ON true"""
