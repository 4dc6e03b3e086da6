"""Screening that exists only in the sandbox: names decide, and amounts of what leaves the bank."""

from typing import Final

from billfold.sandbox.magic_values import MagicValue

_STOPPED_WIRES: Final = {2: "SANCTION_SCREEN_FAILED"}
"""The last two digits of an amount -> why it is rejected."""
_STOPPED_CARD_PAYMENTS: Final = 4
"""The last two digits of an amount."""
_UNVERIFIABLE: Final = "UNVERIFIABLE"
_INVALID: Final = "invalid"
_DEPOSITS: Final = (11, 22)
MAGIC_VALUES: Final = (
    *(
        MagicValue("wires", "amount", f"ends in {cents:02}", f"An outgoing wire is rejected: {why}.")
        for cents, why in _STOPPED_WIRES.items()
    ),
    MagicValue("card-money", "amount", f"ends in {_STOPPED_CARD_PAYMENTS:02}", "A card payment is declined."),
    MagicValue("counterparties", "name", f"contains {_UNVERIFIABLE}", "The name cannot be verified."),
    MagicValue("counterparties", "file name", f"contains {_INVALID}", "An uploaded document is rejected."),
    MagicValue(
        "counterparties", "micro-deposits", "{} and {}".format(*_DEPOSITS), "The deposits, in cents, to confirm."
    ),
)


class SimulatedScreening:
    """Lets everybody try what a rejection looks like."""

    def stopped_wire(self, amount: int | None) -> str | None:
        """Stop amounts that end in 02."""
        return None if amount is None else _STOPPED_WIRES.get(amount % 100)

    def stops_card(self, amount: int) -> bool:
        """Stop amounts that end in 04."""
        return amount % 100 == _STOPPED_CARD_PAYMENTS

    def unverifiable_name(self, name: str) -> str | None:
        """Verify no name with UNVERIFIABLE in it."""
        return "The name cannot be verified." if _UNVERIFIABLE in name.upper() else None

    def invalid_file(self, name: str | None) -> str | None:
        """Accept no file with `invalid` in its name."""
        return "IMAGE_QUALITY_ERROR_CUTOFF" if name and _INVALID in name.lower() else None

    def deposit_amounts(self) -> tuple[int, int]:
        """Return 11 and 22 cents."""
        return _DEPOSITS
