"""Parses the request of a network message, in either standard."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from billfold.payments.cards.authorizations.commands import EntryMode
from billfold.payments.cards.authorizations.messages import MessageType
from billfold.sandbox.card_processor.host.messages import FormatError, Message


class Outcome(Enum):
    """The result of a message: the response code of 1987 and the action code of 1993."""

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
    INVALID_TRANSACTION = ("12", "902")
    FORMAT_ERROR = ("30", "904")
    ISSUER_INOPERATIVE = ("91", "907")
    SYSTEM_MALFUNCTION = ("96", "909")
    DUPLICATE_TRANSMISSION = ("94", "913")
    ORIGINAL_NOT_FOUND = ("25", "914")
    MAC_INCORRECT = ("63", "916")

    @property
    def is_partial(self) -> bool:
        """Return whether less is approved than was requested."""
        return self in {Outcome.APPROVED_IN_PART, Outcome.APPROVED_WITHOUT_CASH}

    def code(self, *, is_1993: bool) -> str:
        """Return the code of a standard."""
        return self.value[is_1993]


USD: Final = "840"
_PROMISED: Final = frozenset({"00", "10", "87", "000", "001", "002", "003"})
_HALF_YEAR: Final = timedelta(days=182)
_ENTRY_1987: Final[Mapping[str, EntryMode]] = {
    **dict.fromkeys(("05", "95"), EntryMode.CHIP),
    **dict.fromkeys(("07", "91"), EntryMode.CONTACTLESS),
    **dict.fromkeys(("02", "80", "90"), EntryMode.MAGSTRIPE),
    "10": EntryMode.RECURRING,
    "81": EntryMode.ECOMMERCE,
}
_ENTRY_1993: Final[Mapping[str, EntryMode]] = {
    **dict.fromkeys("2B", EntryMode.MAGSTRIPE),
    **dict.fromkeys("7AM", EntryMode.CONTACTLESS),
    **dict.fromkeys("STUV", EntryMode.ECOMMERCE),
    "5": EntryMode.CHIP,
}
_REFERENCE: Final = re.compile("[!-~]+")
_WITH_CASH_BACK: Final = "09"
_CASH_AMOUNT: Final = re.compile(r"\d\d40(840)[CD](\d{12})")
_AMOUNT_WIDTH: Final = 20
_ESTIMATED: Final = frozenset({"101", "103", "105", "107"})
_SUPPLEMENTARY: Final = frozenset({"106", "107"})


class NotSupported(Exception):
    """A valid message that the host does not serve."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


class Request(NamedTuple):
    """A message about a card. Amounts are cents; times are in the network's format."""

    kind: MessageType
    pan: str
    expires: str | None
    pin_block: str | None
    cvv: str | None
    amount: int
    released: int | None
    """The amount that a reversal releases; None for all."""
    cash: int
    """The part of the amount that is paid out in cash; all of it if element 54 does not say."""
    is_partial_allowed: bool
    is_purchase_only_allowed: bool
    is_preauthorization: bool
    is_advice: bool
    """True if it reports what has happened and cannot be declined."""
    is_declined: bool
    """An advice that the network itself declined: there is nothing to post."""
    entry_mode: EntryMode
    merchant: Mapping[str, str | None]
    acquirer: str
    stan: str
    rrn: str
    traced: str
    """The time by which a reversal identifies this message."""
    transmitted_at: datetime
    original: tuple[str, str, str] | None
    """The message that a reversal is about: its trace number, its time, and its acquirer."""

    @property
    def network_reference(self) -> str:
        """Return the reference that all messages of one purchase share: acquirer and retrieval reference number."""
        return f"{self.acquirer}-{self.rrn}"

    @property
    def message_id(self) -> UUID:
        """The key of a message and its retransmissions, whether marked as a repeat or not."""
        return uuid5(NAMESPACE_OID, f"{self.acquirer} {self.stan} {self.rrn} {self.transmitted_at} {self.kind}")


def read_request(message: Message, now: datetime) -> Request:
    """Read a message of the classes 1, 2 and 4. Raises FormatError, NotSupported."""
    fields = message.fields
    track_pan, track_expires = _track(message)
    pan = fields.get("2") or track_pan
    if not pan or (track_pan and pan != track_pan):
        raise FormatError("2", message)
    private = _private_elements(message)
    terminal = private.get("61", "")
    kind = _kind(message)
    amount, is_foreign = _amount(message, kind)
    return Request(
        kind=kind,
        pan=pan,
        expires=fields.get("14") or track_expires,
        pin_block=fields.get("52"),
        cvv=private.get("92"),
        amount=amount,
        released=_released(message, amount) if kind == MessageType.REVERSAL else None,
        cash=_cash(message, amount),
        is_partial_allowed=terminal[:1] == "1" and not is_foreign,
        is_purchase_only_allowed=terminal[1:2] == "1" and not is_foreign,
        is_preauthorization=fields.get("24") in _ESTIMATED if message.is_1993 else fields.get("25") == "06",
        is_advice=message.mti[2] == "2",
        is_declined=message.mti[1:3] in {"12", "22"} and fields.get("39", "00") not in _PROMISED,
        entry_mode=_entry_mode(message),
        merchant=_merchant(message),
        acquirer=_required(message, "32"),
        stan=_required(message, "11"),
        rrn=_reference(message),
        traced=_required(message, "12" if message.is_1993 else "7"),
        transmitted_at=_transmitted_at(message, now),
        original=_original(message),
    )


def _required(message: Message, field: str) -> str:
    value = message.fields.get(field, "")
    if not value.strip():
        raise FormatError(field, message)
    return value


def _reference(message: Message) -> str:
    value = _required(message, "37").strip()
    if not _REFERENCE.fullmatch(value):
        raise FormatError("37", message)
    return value


def _kind(message: Message) -> MessageType:
    function, processing = message.mti[2], _required(message, "3")[:2]
    if message.mti[1] == "4":
        return MessageType.REVERSAL
    if processing == "20":
        return MessageType.REFUND
    if processing not in {"00", "01", "09", "31"}:
        raise NotSupported(Outcome.INVALID_TRANSACTION)
    if processing == "31":
        return MessageType.BALANCE_INQUIRY
    if function == "2":
        return MessageType.ADVICE
    is_supplementary = message.is_1993 and message.fields.get("24") in _SUPPLEMENTARY
    return MessageType.INCREMENT if is_supplementary else MessageType.AUTHORIZATION


def _amount(message: Message, kind: MessageType) -> tuple[int, bool]:
    """Return the amount in cents, and whether it was converted from another currency."""
    fields = message.fields
    if kind == MessageType.BALANCE_INQUIRY:
        return 0, False
    amount, currency = _required(message, "4"), fields.get("49", USD)
    is_foreign = currency != USD
    if is_foreign:
        amount, currency = fields.get("6", ""), fields.get("51", "")
    if currency != USD or not amount:
        raise NotSupported(Outcome.INVALID_TRANSACTION)
    # The rest after a reversal may be zero, and a purchase of zero asks whether the card is valid.
    if int(amount) == 0 and kind not in {MessageType.REVERSAL, MessageType.AUTHORIZATION}:
        raise NotSupported(Outcome.INVALID_AMOUNT)
    return int(amount), is_foreign


def _cash(message: Message, amount: int) -> int:
    """Return how many cents of the amount are paid out in cash."""
    processing = message.fields["3"][:2]
    if processing == "00":
        return 0
    amounts = message.fields.get("54", "")
    if processing == _WITH_CASH_BACK:
        for start in range(0, len(amounts), _AMOUNT_WIDTH):
            found = _CASH_AMOUNT.fullmatch(amounts[start : start + _AMOUNT_WIDTH])
            if found is not None:
                return min(int(found[2]), amount)
    return amount


def _released(message: Message, amount: int) -> int | None:
    """Return the amount that a partial reversal releases, None for all: the authorized amount less the rest."""
    fields = message.fields
    if message.is_1993:
        if fields.get("24") != "401":
            return None
        whole, left = int(_required(message, "30")[:12]), amount
    elif "95" in fields:
        if not (fields["95"][:12].isascii() and fields["95"][:12].isdecimal()):
            raise FormatError("95", message)
        whole, left = amount, int(fields["95"][:12])
    else:
        return None
    if left >= whole:
        raise NotSupported(Outcome.INVALID_AMOUNT)
    return whole - left if left else None


def _original(message: Message) -> tuple[str, str, str] | None:
    """Return the reference in element 90 (1987) or 56 (1993) to the reversed message."""
    if message.is_1993:
        elements = message.fields.get("56", "")
        named = elements[4:10], elements[10:22], elements[24:].lstrip("0")
    else:
        elements = message.fields.get("90", "")
        named = elements[4:10], elements[10:20], elements[20:31].lstrip("0")
    return named if elements else None


def _track(message: Message) -> tuple[str, str | None]:
    """Return card number and expiry of track 2."""
    track = message.fields.get("35", "").upper().replace("=", "D")
    if not track:
        return "", None
    pan, _, rest = track.partition("D")
    if not (pan.isascii() and pan.isdecimal() and rest[:4].isascii() and rest[:4].isdecimal()):
        raise FormatError("35", message)
    return pan, rest[:4]


def _private_elements(message: Message) -> dict[str, str]:
    """Return the subelements of element 48: each has two digits of number, two of length, and its value."""
    found: dict[str, str] = {}
    rest = message.fields.get("48", "")
    while rest:
        number, length, rest = rest[:2], rest[2:4], rest[4:]
        if not (length.isascii() and length.isdecimal() and len(length) == 2 and len(rest) >= int(length)):  # noqa: PLR2004
            raise FormatError("48", message)
        found[number], rest = rest[: int(length)], rest[int(length) :]
    return found


def _entry_mode(message: Message) -> EntryMode:
    fields = message.fields
    if fields.get("3", "")[:2] == "01":
        return EntryMode.ATM
    code = fields.get("22", "")
    if not message.is_1993:
        return EntryMode.ECOMMERCE if fields.get("25") == "59" else _ENTRY_1987.get(code[:2], EntryMode.KEYED)
    presence, entry = code[4:5], code[6:7]
    if presence in {"4", "5"}:
        return EntryMode.RECURRING if presence == "4" else EntryMode.ECOMMERCE
    return _ENTRY_1993.get(entry, EntryMode.KEYED)


def _merchant(message: Message) -> Mapping[str, str | None]:
    fields = message.fields
    place = fields.get("43", "")
    if message.is_1993:
        # name\street\city\ and then 10 characters of postal code, 3 of state and 3 of country
        name, street, city, rest = (*place.split("\\", 3), "", "", "")[:4]
        state, country = rest[10:13], rest[13:16]
    else:
        name, street, city, state, country = place[:23], "", place[23:36], place[36:38], place[38:40]
    texts = {
        "name": _printable(name) or _printable(fields.get("42", "")) or "Unknown merchant",
        "street_address": street,
        "city": city,
        "state": state,
        "country": country,
        "terminal_id": fields.get("41", ""),
        "acquirer_id": fields.get("32", ""),
    }
    category = fields.get("26" if message.is_1993 else "18")
    if category is None and message.mti[1] != "4" and fields.get("3", "")[:2] != "31":
        raise FormatError("26" if message.is_1993 else "18", message)
    return {each: _printable(text) or None for each, text in texts.items()} | {"category_code": category or "0000"}


def _printable(text: str) -> str:
    """Return a text without characters that are not text: an advice is not refused for them."""
    return "".join(each if each.isprintable() else " " for each in text).strip()


def _transmitted_at(message: Message, now: datetime) -> datetime:
    """Return when a message was sent (MMDDhhmmss, UTC), in the year that is nearest to now."""
    sent = _required(message, "7")
    for year in (now.year, now.year - 1, now.year + 1):
        try:
            read = datetime.strptime(f"{year}{sent}", "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        except ValueError:  # February 29 of another year
            continue
        if abs(read - now) <= _HALF_YEAR + timedelta(days=1):
            return read
    raise FormatError("7", message)
