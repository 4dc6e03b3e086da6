"""Rows as they were: a change of a row that `keeps_former` leaves its former state in `former_row`."""


def joined_as_was(table: str, key: str, at: str) -> str:
    """Return the join that adds a row of a table as it was at an instant, an SQL value: the composite `(w.was)`.

    That is its state before the first change after the instant, or else its present one. Whether it was there yet must
    be told by a column that never changes.
    """
    return f"""CROSS JOIN LATERAL (
    SELECT json_populate_record({table}, (
      SELECT f.row FROM former_row f
       WHERE f.customer_id = {table}.customer_id AND f.kind = '{table}' AND f.object_id = {table}.{key}
         AND f.until > {at}
       ORDER BY f.until LIMIT 1)) AS was OFFSET 0) w"""
