"""In which capacity the bank makes a trade."""

from enum import StrEnum


class Capacity(StrEnum):
    """For whose account the bank trades."""

    AGENT = "AGENT"
    """For the customer's, on the market."""
    PRINCIPAL = "PRINCIPAL"
    """For its own: outside market hours it is the other side of the trade."""
