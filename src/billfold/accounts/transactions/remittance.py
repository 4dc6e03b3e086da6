"""What a payment says it is for, as both APIs show it: lines of text, references, and documents it settles."""

from collections.abc import Sequence
from typing import Any

import msgspec


class SettledDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that a payment settles, in the words of ISO 20022 (`RmtInf/Strd`).

    `type` is a code such as CINV, `date` ISO 8601, `amount` what is paid of it in its `currency`, `reference` that of
    the payee, `information` a text.
    """

    type: str | None = None
    number: str | None = None
    date: str | None = None
    amount: str | None = None
    currency: str | None = None
    reference: str | None = None
    information: str | None = None


def remittance_shown(
    lines: Sequence[str], end_to_end: str | None, documents: Sequence[SettledDocument] | None = None
) -> dict[str, Any] | None:
    """Return remittance information as contract and ISO 20022 name its parts, None if there is none."""
    numbers = [each.reference or each.number for each in documents or ()]
    structured = {
        "reference": next(filter(None, numbers), None),
        "end_to_end_identification": end_to_end,
        "documents": msgspec.to_builtins(documents) if documents else None,
    }
    structured = {name: value for name, value in structured.items() if value}
    if not lines and not structured:
        return None
    return {"unstructured": list(lines), "structured": structured or None}
