"""Migrations are applied while the release before is in use: nothing in them blocks it for long, or breaks it.

One that cannot be written so says in a line of its own why the bank has to be stopped: `-- Needs a stop: the reason`.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from billfold.migrations.runner import Migration, read_migrations

SQUAWK = Path(sys.executable).with_name("squawk")
OUR_TASTE = (
    *("require-lock-timeout", "require-statement-timeout"),  # the runner's
    *("prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-text-field", "prefer-identity"),
    "ban-char-field",  # a CUSIP has nine characters
)
REPEATABLE = "prefer-robust-stmts"
"""A statement outside a transaction is run again after a crash."""
UNSEEN = re.compile(
    r"^(UPDATE\b|DELETE\b|LOCK\b|TRUNCATE\b|ALTER TYPE \w+ (ADD|DROP|ALTER|RENAME) ATTRIBUTE)", re.MULTILINE
)
"""What the linter has no rule for; rows are changed in batches, by the release that needs it."""


def complaints(step, folder):
    if step.stop_reason:
        return []
    file = folder / f"{step.name}.up.sql"
    file.write_text(step.up)
    left_out = OUR_TASTE + (REPEATABLE,) * step.in_transaction
    options = ["--pg-version=15", "--reporter=json", *(f"--exclude={rule}" for rule in left_out)]
    options += ["--assume-in-transaction"] * step.in_transaction
    done = subprocess.run([str(SQUAWK), *options, str(file)], capture_output=True, text=True, check=False, timeout=60)
    without_functions = re.sub(r"\$\$.*?\$\$", "", step.up, flags=re.DOTALL)
    if step.in_transaction and "CONCURRENTLY" in without_functions:
        return ["CONCURRENTLY: outside a transaction only"]
    found = [f"line {each['line'] + 1}: {each['rule_name']}" for each in json.loads(done.stdout)]
    return found + [f"{each[1]}: of the whole table" for each in UNSEEN.finditer(without_functions)]


@pytest.mark.parametrize("step", read_migrations(), ids=lambda step: step.name)
def test_every_migration_can_be_applied_while_the_previous_release_runs(step, tmp_path):
    assert complaints(step, tmp_path) == []


BLOCKING = """CREATE INDEX a ON big (x);
ALTER TABLE big ALTER COLUMN x TYPE bigint;
ALTER TABLE big ALTER COLUMN x SET NOT NULL;
ALTER TABLE big ADD FOREIGN KEY (x) REFERENCES other;
ALTER TABLE big DROP COLUMN x;
ALTER TABLE big RENAME COLUMN x TO y;
ALTER TABLE big ADD COLUMN z uuid DEFAULT gen_random_uuid();
DROP INDEX b;
DROP FUNCTION f;
UPDATE big SET x = 1;
CREATE INDEX CONCURRENTLY c ON big (x);
-- Outside a transaction
CREATE INDEX CONCURRENTLY d ON big (x);"""


def migration(sql):
    return Migration(2, "0002_new", sql, down="")


def test_blocking_or_breaking_migrations_are_refused_unless_marked_as_needing_a_stop(tmp_path):
    *inside, mark, outside = BLOCKING.splitlines()
    for sql in (*inside, f"{mark}\n{outside}"):
        assert complaints(migration(sql), tmp_path), sql
        assert not complaints(migration(f"-- Needs a stop: rows are moved.\n{sql}"), tmp_path)
    made = "CREATE TABLE small (x bigint PRIMARY KEY); CREATE INDEX small_x ON small (x);"
    assert not complaints(migration(f"{made} ALTER TABLE big ADD COLUMN z text;"), tmp_path)
    assert not complaints(migration(f"{mark}\n{outside.replace('d ON', 'IF NOT EXISTS d ON')}"), tmp_path)
