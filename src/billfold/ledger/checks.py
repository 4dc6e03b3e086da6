"""Checks that parts share: rows against the outcomes of their commands, accounts against their parts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from billfold.ledger.commands import Command
from billfold.platform.database.checks import Certainty, Check, names_in_sql
from billfold.platform.database.rows import stored_name


def account_total(kind: str, expected: str) -> Check:
    """Compare the balance of all accounts of a kind, in cents, with a query."""
    return Check(
        "account",
        "balance is {balance}, but its parts explain {expected}",
        f"""SELECT '{kind}' AS kind, 'USD' AS asset, balance, expected
              FROM (SELECT coalesce(sum(credits - debits), 0)::bigint AS balance
                      FROM account WHERE kind = '{kind}' AND asset = 'USD') held,
                   (SELECT coalesce(({expected}), 0)::bigint AS expected) explained
             WHERE balance <> expected""",
        certainty=Certainty.SUSPECT,
    )


class TrackedTable(NamedTuple):
    """A table of things with an id: the commands that create them, and the column of their creation time."""

    name: str
    id_column: str
    created_by: tuple[type[Command], ...]
    created_at: str
    outcomes: str = "command"
    id_in_outcome: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Its primary key."""
        return ("customer_id",) if self.name == "customer" else ("customer_id", self.id_column)


def creation_checks(tracked: TrackedTable) -> Iterator[Check]:
    """Compare rows with the commands that created them, both ways."""
    kinds = names_in_sql(*tracked.created_by)
    id_expression = tracked.id_in_outcome or f"outcome->>'{tracked.id_column}'"
    creations = f"""
      (SELECT customer_id, {id_expression} AS id, min(booked_at) AS at FROM {tracked.outcomes}
        WHERE accepted AND kind IN ({kinds}) AND {id_expression} IS NOT NULL
        GROUP BY 1, 2)"""
    key = ", ".join(f"n.{column}" for column in tracked.key)
    yield Check(
        tracked.name,
        "no command created it at that time",
        f"""SELECT {key} FROM {tracked.name} n LEFT JOIN {creations} b
              ON b.customer_id = n.customer_id AND b.id = n.{tracked.id_column}::text
             WHERE b.at IS DISTINCT FROM n.{tracked.created_at}""",
        certainty=Certainty.MISSING,
    )
    id_column_sql = "" if tracked.name == "customer" else f", b.id AS {tracked.id_column}"
    yield Check(
        tracked.name,
        "its command was accepted, but the row is missing",
        f"""SELECT b.customer_id{id_column_sql} FROM {creations} b LEFT JOIN {tracked.name} n
              ON n.customer_id = b.customer_id AND n.{tracked.id_column}::text = b.id
             WHERE n.customer_id IS NULL""",
        certainty=Certainty.MISSING,
    )


def outcome_checks(
    tracked: TrackedTable,
    *,
    columns: Mapping[str, str],
    ended_by: Sequence[type[Command]],
    ended_at: str,
    initial_status: str,
    ended: Mapping[str, str],
) -> Iterator[Check]:
    """Compare rows of a table with the outcomes of the commands that created and ended them.

    `columns` maps columns to names in the outcome of the creating command, `ended` to those in the outcome
    of the ending one. `initial_status` is SQL.
    """
    name, id_column = tracked.name, tracked.id_column
    yield from creation_checks(tracked)
    created, ends = (
        f"command {alias} ON {alias}.accepted AND {alias}.kind IN ({names_in_sql(*kinds)})"
        f" AND {alias}.customer_id = t.customer_id AND {alias}.outcome->>'{id_column}' = t.{id_column}::text"
        for alias, kinds in (("b", tracked.created_by), ("e", ended_by))
    )
    yield Check(
        name,
        "it differs from its creating command",
        f"""SELECT t.customer_id, t.{id_column} FROM {name} t JOIN {created}
             WHERE ({", ".join(f"t.{each}::text" for each in columns)})
                   IS DISTINCT FROM ({", ".join(f"b.outcome->>'{each}'" for each in columns.values())})""",
    )
    yield Check(
        name,
        "status is {status}, but its last command left {expected}, or its end differs",
        f"""SELECT t.customer_id, t.{id_column}, t.status, coalesce(e.outcome->>'status', {initial_status}) AS expected
              FROM {name} t LEFT JOIN {created} LEFT JOIN {ends}
             WHERE (t.status, {", ".join(f"t.{each}::text" for each in ended)}, t.{ended_at})
                   IS DISTINCT FROM (coalesce(e.outcome->>'status', {initial_status}),
                     {", ".join(f"e.outcome->>'{stored_name(each)}'" for each in ended.values())}, e.booked_at)""",
    )


def directory_checks(tracked: TrackedTable, kind: str | None = None, value: str | None = None) -> Iterator[Check]:
    """Compare rows with their entries in the directory, both ways.

    By default an entry is of the table's kind and its value is the id; otherwise `value` is SQL on the row `n`.
    """
    kind, value = kind or tracked.name, value or f"n.{tracked.id_column}::text"
    # Each part comes from its shards by itself: names do not lie with their customers.
    both = f"""
      WITH d AS MATERIALIZED (SELECT kind, value, customer_id, object_id FROM directory WHERE kind = '{kind}'),
           n AS MATERIALIZED (SELECT n.customer_id, n.{tracked.id_column} AS object_id, {value} AS value
                                FROM {tracked.name} n)"""
    yield Check(
        "directory",
        "the entry refers to no row of this customer",
        f"""{both} SELECT d.kind, d.value FROM d WHERE NOT EXISTS (
               SELECT 1 FROM n WHERE (n.customer_id, n.object_id, n.value) = (d.customer_id, d.object_id, d.value))""",
    )
    yield Check(
        "directory",
        "the entry is missing",
        f"""{both} SELECT '{kind}' AS kind, n.value FROM n
             WHERE n.value IS NOT NULL AND NOT EXISTS (SELECT 1 FROM d WHERE d.value = n.value)""",
        certainty=Certainty.MISSING,
    )


def change_check(table: str, column: str, id_column: str | None = None, *, unless: str = "false") -> Check:
    """Find rows `t` that changed when no command of their customer was accepted, except where `unless` holds."""
    key = "t.customer_id" + (f", t.{id_column}" if id_column else "")
    return Check(
        table,
        f"{column} is {{at}}, but no command was booked then",
        # Each instant once: in a bank whose clock is stopped all commands have the same.
        f"""SELECT {key}, t.{column} AS at FROM {table} t LEFT JOIN (
              SELECT DISTINCT customer_id, booked_at FROM command WHERE accepted) c
                ON c.customer_id = t.customer_id AND c.booked_at = t.{column}
             WHERE t.{column} IS NOT NULL AND c.customer_id IS NULL AND NOT {unless}""",
    )
