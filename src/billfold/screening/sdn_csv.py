"""OFAC's list as CSV: sdn.csv with alt.csv (other names) and add.csv (addresses) beside it.

They have no header; `-0-` is null; a Control-Z may end them. Birth dates and nationalities stand in the remarks.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Final

from billfold.screening.sdn_xml import Progress, read_birth
from billfold.screening.types import (
    ENTRIES_MAX,
    NAMES_MAX,
    TEXT_MAX,
    EntryKind,
    InvalidList,
    ListedName,
    ListEntry,
    SanctionsList,
)

_NULL: Final = "-0-"
_END_OF_FILE: Final = "\x1a"
_COLUMNS: Final = {"sdn.csv": 12, "alt.csv": 5, "add.csv": 6}
_BIRTH = re.compile(r"\bDOB ([^;.]{1,100})")
_NATIONALITY = re.compile(r"\b(?:nationality|citizen) ([A-Z][^;.]{1,100})")
_WEAK_NAMES = re.compile(r"[\"\u201c]([^\"\u201d]{1,350})[\"\u201d]")


def read_csv(path: Path, published_on: date, progress: Progress | None = None) -> SanctionsList:
    """Return the list of an sdn.csv and the files beside it. Raises InvalidList, which names file and line."""
    names, countries = _other_names(path), _countries(path)
    entries: dict[int, ListEntry] = {}
    for line, uid, row in _rows(path):
        if uid in entries or len(entries) >= ENTRIES_MAX:
            raise InvalidList("is there twice, or one too many", file=path.name, line=line, uid=uid)
        entries[uid] = _entry(row, uid, line, names=names.pop(uid, []), countries=countries.pop(uid, []))
        if progress:
            progress(len(entries))
    for file, left in (("alt.csv", names), ("add.csv", countries)):
        if left:
            raise InvalidList("belongs to no entry of sdn.csv", file=file, uid=next(iter(left)))
    if not entries:
        raise InvalidList("has no entry", file=path.name)
    return SanctionsList(published_on=published_on, entries=tuple(entries.values()))


def _entry(row: list[str], uid: int, line: int, *, names: list[ListedName], countries: list[str]) -> ListEntry:
    _, name, kind, program, *_, remarks = row
    if not name or len(names) >= NAMES_MAX or (kind and kind.upper() not in EntryKind.__members__):
        raise InvalidList("has no name, too many, or an unknown SDN_Type", file="sdn.csv", line=line, uid=uid)
    weak = [ListedName(text=each, kind="a.k.a.", is_weak=True) for each in _WEAK_NAMES.findall(remarks)]
    births = (read_birth(each) for each in _BIRTH.findall(remarks))
    return ListEntry(
        uid=uid,
        kind=EntryKind[kind.upper()] if kind else EntryKind.ENTITY,
        names=(ListedName(text=name), *names, *weak),
        programs=tuple(each.strip("[] ") for each in program.split("] [") if each),
        births=tuple(each for each in births if each is not None),
        countries=tuple(dict.fromkeys([*countries, *(each.strip() for each in _NATIONALITY.findall(remarks))])),
        remarks=remarks,
    )


def _other_names(path: Path) -> dict[int, list[ListedName]]:
    found: dict[int, list[ListedName]] = defaultdict(list)
    for _, uid, (_, _, kind, name, _) in _rows(path.with_name("alt.csv")):
        found[uid].append(
            ListedName(text=name, kind={"aka": "a.k.a.", "fka": "f.k.a.", "nka": "n.k.a."}.get(kind, kind))
        )
    return found


def _countries(path: Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for _, uid, row in _rows(path.with_name("add.csv")):
        found[uid] += [row[4]] if row[4] else []
    return found


def _rows(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield each row with its line and its entry; nulls are empty texts."""
    columns = _COLUMNS[path.name]
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                cells = ["" if (cell := each.strip()) == _NULL else cell for each in row]
                if not any(cells) or cells == [_END_OF_FILE]:
                    continue
                wrong = None if len(cells) == columns else f"has {len(cells)} columns instead of {columns}"
                wrong = wrong or ("is too long" if max(map(len, cells)) > TEXT_MAX else None)
                wrong = wrong or (None if re.fullmatch(r"[0-9]{1,18}", cells[0]) else "does not begin with a number")
                if wrong:
                    raise InvalidList(wrong, file=path.name, line=reader.line_num)
                yield reader.line_num, int(cells[0]), cells
    except csv.Error as error:
        raise InvalidList(f"is no CSV: {error}", file=path.name) from None
    except UnicodeDecodeError:
        raise InvalidList("is no UTF-8", file=path.name) from None
    except FileNotFoundError:
        raise InvalidList("is missing: sdn.csv, alt.csv and add.csv belong together", file=path.name) from None
