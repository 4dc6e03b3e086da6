"""Finds the Markdown files: `docs` and the changelog of a checkout, or their copies in an installed package."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_CHECKOUT = Path(__file__).parents[3]


def read_source(name: str) -> str:
    """Return the text of a file by its name below `docs`, or of `CHANGELOG.md`."""
    found = _installed().joinpath(name) if _installed().is_dir() else _in_checkout(name)
    return found.read_text(encoding="utf-8")


@cache
def list_sources() -> tuple[str, ...]:
    """Return the names of all Markdown files, in the order of their names."""
    root = _installed() if _installed().is_dir() else _CHECKOUT / "docs"
    return tuple(sorted(_below(root, "")))


def _installed() -> Traversable:
    return files(__package__).joinpath("content")


def _in_checkout(name: str) -> Path:
    return _CHECKOUT / name if name == "CHANGELOG.md" else _CHECKOUT / "docs" / name


def _below(folder: Traversable, prefix: str) -> list[str]:
    found = []
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            found += _below(each, f"{name}/")
        elif name.endswith(".md"):
            found.append(name)
    return found
