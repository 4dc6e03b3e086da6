"""Secrets and personal numbers in texts: masked in the log, and kept out of the audit log."""

import re

REDACTED = "[hidden]"
_CREDENTIAL = re.compile(r"\b(Bearer|DPoP|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# All that a JWT may be part of, taken whole: searching for its beginning inside would look at a text as often as
# "eyJ" is in it.
_RUN = re.compile(r"[\w.-]+")
_JWT_BEGINS, _JWT_DOTS = "eyJ", 2
_URL_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END|\Z)", re.DOTALL)
_SSN = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")


def redact_text(text: str) -> str:
    """Return a text with what looks like a credential, a private key, a card number or an SSN masked."""
    text = _CREDENTIAL.sub(rf"\1 {REDACTED}", text)
    text = _RUN.sub(_mask_jwt, text)
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    return redact_numbers(text)


def redact_numbers(text: str, mask: str = REDACTED) -> str:
    """Return a text with card numbers and social security numbers masked."""
    text = _SSN.sub(mask, text)
    return _CARD.sub(lambda match: mask if is_card(match[0]) else match[0], text)


def _mask_jwt(run: re.Match[str]) -> str:
    before, found, jwt = run[0].partition(_JWT_BEGINS)
    return before + REDACTED if found and jwt.count(".") >= _JWT_DOTS else run[0]


def is_card(text: str) -> bool:
    """Tell whether a text has the length and the check digit (Luhn) of a card number."""
    digits = [int(char) for char in text if char.isdigit()]
    if not 13 <= len(digits) <= 19:  # noqa: PLR2004 - the lengths ISO/IEC 7812 allows
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(odd) + sum(sum(divmod(2 * digit, 10)) for digit in even)) % 10 == 0
