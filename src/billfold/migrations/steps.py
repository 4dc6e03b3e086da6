"""The steps of the schema, and what each says of itself in comments of its first lines.

    -- Needs a stop: the reason                no process of the release before may run meanwhile, or afterwards
    -- Contracts: schema 0007                  releases that know no schema from 0007 on must be gone
    -- Outside a transaction                   statements that may be repeated, each for itself, such as CONCURRENTLY

A step that says nothing expands: the release before runs on beside it and after it.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

_FILE = re.compile(r"(?P<number>\d{4})_(?P<title>[a-z0-9_]+)\.(?P<way>up|down)\.sql")
_STOP = re.compile(r"^-- Needs a stop: (.+)", re.MULTILINE)
_CONTRACTS = re.compile(r"^-- Contracts: schema (\d{4})", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- Outside a transaction", re.MULTILINE)
_STATEMENT_END = re.compile(r";[ \t]*(?:--[^\n]*)?(?:\n|\Z)")
_COMMENT = re.compile(r"^\s*--[^\n]*\n?", re.MULTILINE)
_BUILT_INDEX = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE
)


class MigrationError(RuntimeError):
    """The files and the database do not belong together; the text says which and why, `next_step` what to do."""

    def __init__(self, text: str, next_step: str = "Use the release that the database belongs to.") -> None:
        super().__init__(text)
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: the way up, and the way back."""

    version: int
    name: str
    up: str
    down: str

    @property
    def sha256(self) -> str:
        """The fingerprint of the way up, as kept in `schema_migration`."""
        return sha256(self.up.encode()).hexdigest()

    @property
    def stop_reason(self) -> str:
        """Why the bank has to be stopped, or "" if it may be in use."""
        found = _STOP.search(self.up)
        return found[1].strip().rstrip(".") if found else ""

    @property
    def oldest_release(self) -> int:
        """The schema that a release must know at least to run on this one; 0: what ran before may go on."""
        if self.stop_reason:
            return self.version
        found = _CONTRACTS.search(self.up)
        return int(found[1]) if found else 0

    @property
    def in_transaction(self) -> bool:
        """Whether it is applied as a whole or not at all."""
        return _OUTSIDE.search(self.up) is None

    @property
    def statements(self) -> list[str]:
        """The statements of a step outside a transaction; each ends with a line."""
        pieces = (_COMMENT.sub("", piece).strip() for piece in _STATEMENT_END.split(self.up))
        return [piece for piece in pieces if piece]

    @staticmethod
    def built_index(statement: str) -> str | None:
        """Return the index that a statement builds while its table is in use, or None."""
        found = _BUILT_INDEX.match(statement)
        return found[1] if found else None


def read_migrations(folder: Traversable | None = None) -> list[Migration]:
    """Return the steps in `folder` (this package) in order.

    Raises MigrationError when a number is missing or taken twice, or a step lacks one of its ways.
    """
    texts: dict[str, dict[str, str]] = {}
    for file in (folder or files("billfold.migrations")).iterdir():
        if match := _FILE.fullmatch(file.name):
            name = f"{match['number']}_{match['title']}"
            texts.setdefault(name, {})[match["way"]] = file.read_text(encoding="utf-8")
    steps = []
    for version, (name, ways) in enumerate(sorted(texts.items()), start=1):
        if int(name[:4]) != version:
            raise MigrationError(f"{name} stands where version {version} is expected")
        if ways.keys() != {"up", "down"}:
            raise MigrationError(f"{name} has no way {'up' if 'down' in ways else 'down'}")
        steps.append(Migration(version, name, ways["up"], down=ways["down"]))
    return steps
