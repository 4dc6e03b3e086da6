"""The process of the simulated card processor: a request per line of its input, a response per line of its output.

It ends with its input, and so with the process that started it.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from billfold.payments.cards.commands import Padding
from billfold.payments.cards.processor import PinError, PublicKeyError
from billfold.sandbox.card_processor.vault import CardVault
from billfold.sandbox.line_process import serve_lines


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """One call."""

    method: str
    card_id: str = ""
    on: date | None = None
    value: str = ""
    padding: Padding = Padding.PKCS1_V1_5


def answer(vault: CardVault, request: Request) -> dict[str, Any]:
    """Return the response to a call: `result`, or `error` with what the caller may read."""
    try:
        return {"result": _METHODS[request.method](vault, request)}
    except PublicKeyError as error:
        return {"error": "public_key", "reason": str(error)}
    except PinError:
        return {"error": "pin", "reason": ""}
    except LookupError:
        return {"error": "card or method", "reason": ""}


def _issue(vault: CardVault, request: Request) -> dict[str, Any]:
    assert request.on is not None
    card = vault.issue(request.card_id, request.on)
    return {"last_four": card.pan[-4:], "expires_on": card.expires_on}


_METHODS: Final[Mapping[str, Callable[[CardVault, Request], Any]]] = MappingProxyType(
    {
        "issue": _issue,
        "encrypt_detail": lambda vault, request: vault.encrypt_detail(request.card_id, request.value, request.padding),
        "pin_key": lambda vault, _: vault.pin_key(),
        "set_status": lambda vault, request: vault.set_status(request.card_id, request.value),
        "set_pin": lambda vault, request: vault.set_pin(request.card_id, request.value),
    }
)


if __name__ == "__main__":
    card_vault = CardVault(Path(sys.argv[1]))
    serve_lines(Request, lambda request: answer(card_vault, request))
