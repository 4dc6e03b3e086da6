#!/usr/bin/env python
"""Write the versions in uv.lock into the package, as constraints for pip: `pip install -c constraints.txt billfold`.

With --check it only compares.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = {"billfold", "billfold-client"}
CONSTRAINTS = ROOT / "src/billfold/constraints.txt"


def constraints() -> str:
    """Return a line for each package that billfold or one of its extras may install."""
    packages = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    found = set(_needed(packages, "billfold"))
    return "".join(f"{name}=={packages[name]['version']}\n" for name in sorted(found - OWN))


def _needed(packages: dict[str, dict[str, object]], first: str) -> Iterator[str]:
    """Yield what a package needs, with all its extras, at any depth. Not what it is developed with."""
    seen, left = set(), [first]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        package: dict = packages[name]  # type: ignore[type-arg]
        wanted = [*package.get("dependencies", ())]
        for extra in package.get("optional-dependencies", {}).values():
            wanted += extra
        left += [each["name"] for each in wanted]
        yield name


if __name__ == "__main__":
    if "--check" in sys.argv:
        if not CONSTRAINTS.exists() or CONSTRAINTS.read_text() != constraints():
            sys.exit("src/billfold/constraints.txt is not that of uv.lock: run tools/write_constraints.py")
    else:
        CONSTRAINTS.write_text(constraints())
