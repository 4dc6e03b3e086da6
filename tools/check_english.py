#!/usr/bin/env python
"""Check that docstrings, comments and documents are written in plain English.

    python tools/check_english.py

Prints each place with a word of `BANNED`, and each docstring that begins with a question word ("What a row
holds."), which is half a sentence. `make check` fails when there is one.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BANNED = re.compile(r"\b(anew|goes on|put aside(?! for)|whoever|nobody waits|beside|is away)\b", re.IGNORECASE)
HEADLESS = re.compile(r"(What|Who|Whose|Whom|Where|When|How|Why|Which|Whether)\b")
CHECKED = {".py", ".md", ".html", ".sql"}
UNCHECKED = ("docs/reference/", "CHANGELOG.md", "tools/check_english.py", "src/billfold/migrations/0001_")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> int:
    """Print every finding; return the exit status."""
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [Path(each) for each in files if not each.startswith(UNCHECKED)]
    found = [each for path in paths if path.suffix in CHECKED and path.is_file() for each in findings(path)]
    print("\n".join(found) or "Plain English: nothing found.")
    return bool(found)


def findings(path: Path) -> Iterator[str]:
    """Yield "path:line: finding" for each banned word and each headless docstring of a file."""
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        for word in BANNED.findall(line):
            yield f'{path}:{number}: do not write "{word}"'
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, DEFINITIONS) and HEADLESS.match(ast.get_docstring(node) or ""):
                yield f"{path}:{node.body[0].lineno}: a docstring begins with a question word"


if __name__ == "__main__":
    sys.exit(main())
