"""The pages of the project as text, and what they name: code spans, links, commands."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "billfold"
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name_of(page):
    """The page's path below the root."""
    return str(page.relative_to(ROOT))


def text_of(name):
    """The text of the page under this path."""
    return (ROOT / name).read_text()


def spans(page):
    """Return the text between single backquotes outside code blocks."""
    return _SPAN.findall(_BLOCK.sub("", page.read_text()))


def links(page):
    """Links of the page within the project, except those below `/docs`, which the bank generates."""
    return [to for to in _LINK.findall(page.read_text()) if "://" not in to and not to.startswith("/docs/")]


def code(page):
    """Every line of the code blocks and inline code of the page."""
    lines = [line for block in _BLOCK.findall(page.read_text()) for line in block.splitlines()]
    return [*lines, *spans(page)]


def section(name, title):
    """The part of a page under one heading, up to the next of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text_of(name), re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no section {title}"
    return found[1]


def table_rows(text):
    """Return the cells of each row of the tables in a text, without headers and rulers."""
    lines = text.splitlines()
    rows = []
    for place, line in enumerate(lines):
        is_head = lines[place + 1 : place + 2] and re.fullmatch(r"[|\-: ]+", lines[place + 1])
        if line.startswith("|") and not is_head and not re.fullmatch(r"[|\-: ]+", line):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows
