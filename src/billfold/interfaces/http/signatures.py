"""How route functions are declared here: by plain names and types.

`caller: Caller`, `pocket_id: str`, `data: NewPocket` say all there is to say. Litestar 3 will want
a marker around each as well; until then its warnings about that are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from litestar.exceptions import LitestarDeprecationWarning


@contextmanager
def plain_signatures() -> Iterator[None]:
    """Let an application be made of functions with plain signatures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LitestarDeprecationWarning)
        yield
