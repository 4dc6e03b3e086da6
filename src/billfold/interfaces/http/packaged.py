"""What a package of operations brings along: the routes of its modules, and its examples."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


def routes_of(package: str) -> list[Any]:
    """Return the ROUTES of every module of the package; packages inside it are apart."""
    here = importlib.import_module(package)
    return [
        route
        for module in pkgutil.iter_modules(here.__path__, f"{package}.")
        if not module.ispkg
        for route in getattr(importlib.import_module(module.name), "ROUTES", ())
    ]


@cache
def examples_of(package: str) -> Mapping[str, Mapping[str, Any]]:
    """Return its `examples.json`: operationId -> {"request": ..., "response": ...}; or nothing."""
    packaged = files(package).joinpath("examples.json")
    if not packaged.is_file():
        return {}
    found: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(packaged.read_bytes())
    return found
