"""The rules of all commands, which register themselves when they are imported."""

from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import billfold

_APART = ("billfold.sandbox", "billfold.wiring")


@cache
def load_rules() -> None:
    """Import every module named `rules`, or in a folder `rules`, so that the engine can decide every command."""
    for each in walk_packages(billfold.__path__, "billfold."):
        if not each.name.startswith(_APART) and "rules" in each.name.split("."):
            import_module(each.name)
