"""The rights each SQL statement of the source needs on each table, read from its text."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import billfold
from billfold.approvals.store.approval_rules import KEYS
from billfold.data_keys.keys import SEALED_COLUMNS
from billfold.identity.users.contact_details import CONTACT_TABLES
from billfold.platform.database.rows import Row
from billfold.wiring.worker import _EXPIRED_ROWS

SOURCE = Path(billfold.__file__).parent
OF_OTHERS = (
    "migrations/",
    *(f"sandbox/{each}" for each in ("card_processor/", "crypto_signer/", "forks/", "scenarios/", "control/tasks.py")),
)
"""They work as the owner, or on databases of their own."""
_UPDATE = re.compile(r"\bUPDATE\s+(?:ONLY\s+)?([a-z_]+)(?:\s+(?:AS\s+)?[a-z_]+)?\s+SET\b", re.IGNORECASE)
_DELETE = re.compile(r"\bDELETE\s+FROM\s+([a-z_]+)", re.IGNORECASE)
_INSERT = re.compile(r"\bINSERT\s+INTO\s+([a-z_]+)", re.IGNORECASE)
_UPSERT = re.compile(r"\bON\s+CONFLICT\b[^;]*?\bDO\s+UPDATE\b", re.IGNORECASE)
_LOCK = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE|KEY\s+SHARE)\b")
_FROM = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_]+)", re.IGNORECASE)


def rights_of_code(functions: list[str]) -> tuple[dict[str, set[str]], set[str]]:
    """Return table -> UPDATE, DELETE that statements of the source and of these functions do; and what they lock."""
    needed: defaultdict[str, set[str]] = defaultdict(set)
    locked: set[str] = set()
    for text in [*functions, *_texts()]:
        _read(text, needed, locked)
    for table in _EXPIRED_ROWS:
        needed[table].add("DELETE")
    for table in {
        *(KEYS.keys() - {"policy"}),  # its versions are only added
        *_changed_rows(),
        *_changed_in_audited_actions(),
        *(each.table for each in (*SEALED_COLUMNS, *CONTACT_TABLES)),
    }:
        needed[table].add("UPDATE")
    return dict(needed), locked


def _read(text: str, needed: dict[str, set[str]], locked: set[str]) -> None:
    for table in _UPDATE.findall(text):
        needed[table].add("UPDATE")
    for table in _DELETE.findall(text):
        needed[table].add("DELETE")
    for insert in _INSERT.finditer(text):
        rest = text[insert.end() :]
        following = _INSERT.search(rest)
        if _UPSERT.search(rest[: following.start()] if following else rest):
            needed[insert[1]].add("UPDATE")
    if _LOCK.search(text):
        locked |= set(_FROM.findall(text))


def _texts() -> list[str]:
    """Every string of the source, without the values of f-strings."""
    texts = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).as_posix().startswith(OF_OTHERS):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (each.value if isinstance(each, ast.Constant) else " x " for each in node.values)
                texts.append("".join(map(str, parts)))
    return texts


def _changed_in_audited_actions() -> set[str]:
    """The tables whose rows an `AuditedTable` changes: `_hits.change(...)`, `_invites.add(action, row, _RENEW)`."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for name, table in re.findall(r"^(\w+) = AuditedTable\(\s*[\w.]+,\s*(\w+|\"\w+\")", text, re.MULTILINE):
            if re.search(rf"\b{name}\.(change\b|add\(\w+, \w+, _)", text):
                found |= (
                    {table.strip('"')} if '"' in table else set(re.findall(rf'^{table} = "(\w+)"', text, re.MULTILINE))
                )
    return found


def _changed_rows() -> set[str]:
    """The tables whose rows rules change: `book.change(WireRow, ...)`."""
    names = set(re.findall(r"\.change\((\w+),", "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))))
    return {row.table for row in _subclasses(Row) if row.__name__ in names}


def _subclasses(of: type[Row]) -> set[type[Row]]:
    return {of, *(each for below in of.__subclasses__() for each in _subclasses(below))} - {Row}


def is_stored(row):
    """Tell whether a class of rows is one of the bank's own tables, and not a test's."""
    return row.__module__.startswith("billfold.")
