"""A folder with a trap for every module that a program may import; a trap reports its importer."""

import sys
from importlib.metadata import packages_distributions

# Only modules that are built in: these are never looked for in a folder.
TRAP = """
import posix, sys
told = posix.open({told!r}, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o666)
posix.write(told, (__name__ + " " + repr(sys.orig_argv) + chr(10)).encode())
raise ImportError("imported from the current folder")
"""


def set_import_traps(folder, told):
    """Plant a trap for each module of Python, of the packages that are installed, and of the bank."""
    trap = TRAP.format(told=str(told))
    names = {*sys.stdlib_module_names, *packages_distributions(), "billfold", "sitecustomize", "usercustomize"}
    for name in names - {*sys.builtin_module_names}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(trap)
    (folder / "__init__.py").write_text(trap)
