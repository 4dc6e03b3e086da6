"""Files that outlive a loss of power."""

import os
from pathlib import Path


def make_durable(path: Path) -> None:
    """Flush a file to the disk, or the names in a folder: only then is a new file's name durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
