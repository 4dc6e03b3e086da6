"""The command `billfold`, and `python -m billfold`."""

import gc
import os
import sys

from billfold import __version__
from billfold.cli.python_process import protect_children

_PRIVATE = 0o077
"""The umask: rail files, logs, mail, keys and exports are readable only by the bank's own user."""
_INTERRUPTED = 130
"""The exit code of a shell after Ctrl-C: 128 plus the number of the signal."""


def main() -> None:
    """Run the command line. It is imported here: the version is printed without it."""
    os.umask(_PRIVATE)
    protect_children()
    gc.disable()  # until the modules of a command are loaded
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may not know every sign
    if sys.argv[1:] == ["--version"]:
        print(f"billfold {__version__}")  # noqa: T201 - the console is part of what is not imported
        return
    from zoneinfo import ZoneInfoNotFoundError  # noqa: PLC0415 - importing this module stays cheap

    try:
        from billfold.wiring.command_list import modules_of_commands, print_help  # noqa: PLC0415 - as above

        is_production = os.environ.get("BILLFOLD_ENVIRONMENT", "").strip().lower() == "production"
        completed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
        typed = completed.split()[1:] if "_BILLFOLD_COMPLETE" in os.environ else sys.argv[1:]
        if not typed or typed[0] not in modules_of_commands(is_production=is_production):
            if typed in ([], ["--help"], ["-h"]) and "_BILLFOLD_COMPLETE" not in os.environ:
                print_help(is_production=is_production)
                return
            from billfold.wiring.completion import list_app  # noqa: PLC0415 - as above

            list_app(is_production=is_production)()
            return
        from billfold.wiring.cli.app import run  # noqa: PLC0415 - importing this module stays cheap
        from billfold.wiring.cli_context import Wiring  # noqa: PLC0415 - importing this module stays cheap
        from billfold.wiring.providers import forbid_simulations  # noqa: PLC0415 - importing this module stays cheap

        wiring = Wiring(os.environ)
        if wiring.is_production:
            forbid_simulations()
        sys.exit(run(wiring))
    except KeyboardInterrupt:  # while it was still being imported
        sys.exit(_INTERRUPTED)
    except ZoneInfoNotFoundError as missing:
        sys.exit(f"{missing.args[0]}: install the package tzdata, in a checkout with `rm -r .venv && make setup`.")


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # `python -m` imports from the current folder first
    main()
