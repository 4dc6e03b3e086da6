"""Reads OFAC's SDN list: sdn.xml, or sdn.csv with alt.csv (other names) and add.csv (addresses).

Published at https://sanctionslist.ofac.treas.gov; a document type declaration is refused, so no entity is expanded.

The CSV files have no header; `-0-` is null; a Control-Z may end them. Birth dates and nationalities stand in the
remarks. Dates of birth are written "07 Oct 1952", "Oct 1952", "1952", "circa 1952", "1951 to 1953".
"""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import BinaryIO, Final

from lxml import etree

from billfold.platform.dates import require_in_range
from billfold.screening import types
from billfold.screening.types import ENTRIES_MAX, TEXT_MAX, InvalidList, ListedName

CIRCA_YEARS: Final = 2
"""Years before and after that "circa" covers."""
_YEAR = re.compile(r"\b(?:18|19|20)\d\d\b")
_FORMAT: Final = "%d %b %Y"


def read_birth(text: str) -> types.Birth | None:
    """Return the birth described by a text, None if it names no year."""
    years = [int(each) for each in _YEAR.findall(text)]
    if not years:
        return None
    about = CIRCA_YEARS if "circa" in text.casefold() else 0
    return types.Birth(min(years) - about, max(years) + about, None if about else _day(text))


def _day(text: str) -> date | None:
    try:
        return datetime.strptime(text.strip(), _FORMAT).date()  # noqa: DTZ007 - a date has no zone
    except ValueError:
        return None


Element = etree._Element  # noqa: SLF001 - lxml gives its type no other name
_DIGITS_MAX = 18
Progress = Callable[[int], None]
"""Called with the number of entries read so far."""


def read_xml(path: Path, progress: Progress | None = None) -> types.SanctionsList:
    """Return the list in a file. Raises InvalidList with the line and the entry."""
    try:
        with path.open("rb") as file:
            return _read_list(file, progress)
    except etree.XMLSyntaxError as wrong:
        raise InvalidList(f"is not well-formed XML: {wrong.msg}", line=wrong.lineno) from None


def _read_list(file: BinaryIO, progress: Progress | None) -> types.SanctionsList:
    entries: dict[int, types.ListEntry] = {}
    published_on, expected = None, None
    for element in _elements(file):
        if etree.QName(element).localname == "publshInformation":
            published_on = _published(element)
            expected = _number(element, "Record_Count")
        else:
            entry = _xml_entry(element)
            if entry.uid in entries:
                raise InvalidList("is there twice", line=element.sourceline, uid=entry.uid)
            entries[entry.uid] = entry
            if len(entries) > ENTRIES_MAX:
                raise InvalidList(f"has more than {ENTRIES_MAX:,} entries", line=element.sourceline)
            if progress:
                progress(len(entries))
        _free_element(element)
    if published_on is None:
        raise InvalidList("does not state when it was published (publshInformation)")
    if not entries or expected not in {None, len(entries)}:
        raise InvalidList(f"has {len(entries):,} entries; its Record_Count is {expected}")
    return types.SanctionsList(published_on=published_on, entries=tuple(entries.values()))


def _elements(file: BinaryIO) -> Iterator[Element]:
    """Yield each child of the root once it is read completely."""
    events = etree.iterparse(
        file,
        events=("start", "end"),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    depth = 0
    for event, element in events:
        if event == "start":
            depth += 1
            if depth == 1:
                _check_root(element)
            continue
        depth -= 1
        if depth == 1 and etree.QName(element).localname in {"publshInformation", "sdnEntry"}:
            yield element


def _check_root(root: Element) -> None:
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidList("has a document type declaration, which no published list has", line=root.sourceline)
    if etree.QName(root).localname != "sdnList":
        raise InvalidList(f"begins with {etree.QName(root).localname}, not with sdnList", line=root.sourceline)


def _free_element(element: Element) -> None:
    """Free what was read, so that memory does not grow with the file."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _xml_entry(element: Element) -> types.ListEntry:
    uid = _number(element, "uid")
    if uid is None:
        raise InvalidList("an entry has no uid", line=element.sourceline)
    try:
        kind = types.EntryKind(_text(element, "sdnType").upper())
    except ValueError:
        raise InvalidList(
            f"its sdnType {_text(element, 'sdnType')!r} is unknown", line=element.sourceline, uid=uid
        ) from None
    names = (_name(element), *(_name(each) for each in _child_elements(element, "akaList", "aka")))
    if not names[0].text or len(names) > types.NAMES_MAX:
        raise InvalidList(
            f"it has {'no name' if not names[0].text else 'too many names'}", line=element.sourceline, uid=uid
        )
    return types.ListEntry(
        uid=uid,
        kind=kind,
        names=tuple(each for each in names if each.text),
        programs=tuple(_own_text(each) for each in _child_elements(element, "programList", "program")),
        births=_births(element),
        countries=_xml_countries(element),
        ids=tuple(
            " ".join(filter(None, (_text(each, "idType"), _text(each, "idNumber"), _text(each, "idCountry"))))
            for each in _child_elements(element, "idList", "id")
        ),
        remarks=_text(element, "remarks"),
    )


def _name(element: Element) -> ListedName:
    words = (_text(element, "firstName"), _text(element, "lastName"))
    is_alias = etree.QName(element).localname == "aka"
    return ListedName(
        text=" ".join(each for each in words if each),
        kind=_text(element, "type") or "a.k.a." if is_alias else "",
        is_weak=_text(element, "category") == "weak",
    )


def _births(element: Element) -> tuple[types.Birth, ...]:
    texts = [_text(each, "dateOfBirth") for each in _child_elements(element, "dateOfBirthList", "dateOfBirthItem")]
    return tuple(birth for text in texts if (birth := read_birth(text)) is not None)


def _xml_countries(element: Element) -> tuple[str, ...]:
    lists = (("addressList", "address"), ("nationalityList", "nationality"), ("citizenshipList", "citizenship"))
    found = [_text(each, "country") for around, item in lists for each in _child_elements(element, around, item)]
    return tuple(dict.fromkeys(each for each in found if each))


def _published(element: Element) -> date:
    text = _text(element, "Publish_Date")
    try:
        return require_in_range(datetime.strptime(text, "%m/%d/%Y").date())  # noqa: DTZ007 - a date has no zone
    except ValueError:
        raise InvalidList(f"its Publish_Date {text!r} is not MM/DD/YYYY", line=element.sourceline) from None


def _child_elements(element: Element, around: str, item: str) -> Iterator[Element]:
    for outer in element.iterchildren(f"{{*}}{around}"):
        yield from outer.iterchildren(f"{{*}}{item}")


def _number(element: Element, name: str) -> int | None:
    text = _text(element, name)
    if text and not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        raise InvalidList(f"its {name} {text!r} is not a number", line=element.sourceline)
    return int(text) if text else None


def _text(element: Element, name: str) -> str:
    child = element.find(f"{{*}}{name}")
    return "" if child is None else _own_text(child)


def _own_text(element: Element) -> str:
    text = " ".join((element.text or "").split())
    if len(text) > TEXT_MAX:
        raise InvalidList(f"a text is longer than {TEXT_MAX:,}", line=element.sourceline)
    return text


_NULL: Final = "-0-"
_END_OF_FILE: Final = "\x1a"
_COLUMNS: Final = {"sdn.csv": 12, "alt.csv": 5, "add.csv": 6}
_BIRTH = re.compile(r"\bDOB ([^;.]{1,100})")
_NATIONALITY = re.compile(r"\b(?:nationality|citizen) ([A-Z][^;.]{1,100})")
_WEAK_NAMES = re.compile(r"[\"\u201c]([^\"\u201d]{1,350})[\"\u201d]")


def read_csv(path: Path, published_on: date, progress: Progress | None = None) -> types.SanctionsList:
    """Return the list of an sdn.csv and the files next to it. Raises InvalidList, which names file and line."""
    names, countries = _other_names(path), _csv_countries(path)
    entries: dict[int, types.ListEntry] = {}
    for line, uid, row in _rows(path):
        if uid in entries or len(entries) >= ENTRIES_MAX:
            raise InvalidList("is a duplicate, or exceeds the maximum", file=path.name, line=line, uid=uid)
        entries[uid] = _csv_entry(row, uid, line, names=names.pop(uid, []), countries=countries.pop(uid, []))
        if progress:
            progress(len(entries))
    for file, left in (("alt.csv", names), ("add.csv", countries)):
        if left:
            raise InvalidList("does not belong to an entry of sdn.csv", file=file, uid=next(iter(left)))
    if not entries:
        raise InvalidList("has no entry", file=path.name)
    return types.SanctionsList(published_on=published_on, entries=tuple(entries.values()))


def _csv_entry(
    row: list[str], uid: int, line: int, *, names: list[ListedName], countries: list[str]
) -> types.ListEntry:
    _, name, kind, program, *_, remarks = row
    if not name or len(names) >= types.NAMES_MAX or (kind and kind.upper() not in types.EntryKind.__members__):
        raise InvalidList("has no name, too many, or an unknown SDN_Type", file="sdn.csv", line=line, uid=uid)
    weak = [ListedName(text=each, kind="a.k.a.", is_weak=True) for each in _WEAK_NAMES.findall(remarks)]
    births = (read_birth(each) for each in _BIRTH.findall(remarks))
    return types.ListEntry(
        uid=uid,
        kind=types.EntryKind[kind.upper()] if kind else types.EntryKind.ENTITY,
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


def _csv_countries(path: Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for _, uid, row in _rows(path.with_name("add.csv")):
        found[uid] += [row[4]] if row[4] else []
    return found


def _rows(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield each row with its line and its entry; nulls become empty strings."""
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
        raise InvalidList(f"is not CSV: {error}", file=path.name) from None
    except UnicodeDecodeError:
        raise InvalidList("is not UTF-8", file=path.name) from None
    except FileNotFoundError:
        raise InvalidList("is missing: sdn.csv, alt.csv and add.csv belong together", file=path.name) from None
