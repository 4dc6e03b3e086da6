"""What data element 39 says, in both standards."""

from enum import Enum


class Outcome(Enum):
    """How a message ends: the response code of 1987 and the action code of 1993."""

    APPROVED = ("00", "000")
    APPROVED_IN_PART = ("10", "002")
    APPROVED_WITHOUT_CASH = ("87", "002")
    REVERSAL_ACCEPTED = ("00", "400")
    NETWORK_ACCEPTED = ("00", "800")
    DO_NOT_HONOR = ("05", "100")
    EXPIRED_CARD = ("54", "101")
    SUSPECTED_FRAUD = ("59", "102")
    RESTRICTED_CARD = ("62", "104")
    PIN_TRIES_EXCEEDED = ("75", "106")
    INVALID_AMOUNT = ("13", "110")
    INVALID_CARD_NUMBER = ("14", "111")
    INSUFFICIENT_FUNDS = ("51", "116")
    INCORRECT_PIN = ("55", "117")
    NOT_PERMITTED_TO_CARDHOLDER = ("57", "119")
    EXCEEDS_AMOUNT_LIMIT = ("61", "121")
    SECURITY_VIOLATION = ("63", "122")
    EXCEEDS_FREQUENCY_LIMIT = ("65", "123")
    LOST_CARD = ("41", "208")
    STOLEN_CARD = ("43", "209")
    INVALID_TRANSACTION = ("12", "902")
    FORMAT_ERROR = ("30", "904")
    ISSUER_INOPERATIVE = ("91", "907")
    SYSTEM_MALFUNCTION = ("96", "909")
    DUPLICATE_TRANSMISSION = ("94", "913")
    ORIGINAL_NOT_FOUND = ("25", "914")
    MAC_INCORRECT = ("63", "916")

    @property
    def is_partial(self) -> bool:
        """Whether less is approved than was requested."""
        return self in {Outcome.APPROVED_IN_PART, Outcome.APPROVED_WITHOUT_CASH}

    def code(self, *, is_1993: bool) -> str:
        """Return the code of a standard."""
        return self.value[is_1993]
