"""Values by which a simulated counterpart decides: declared beside the code that obeys them."""

from typing import NamedTuple


class MagicValue(NamedTuple):
    """A value of a field, where it is sent, and what the sandbox does then."""

    area: str
    field: str
    value: str
    effect: str
