"""The command `billfold`, and `python -m billfold`."""

import os
import sys


def main() -> None:
    """Run the command line. It is imported here so that importing this module costs nothing."""
    from billfold.bench.app import bench  # noqa: PLC0415
    from billfold.interfaces.cli.app import run  # noqa: PLC0415
    from billfold.wiring import Wiring  # noqa: PLC0415

    sys.exit(run(Wiring(os.environ), bench))


if __name__ == "__main__":
    main()
