"""What is declared of an operation beside its path: passed to Litestar as `opt`, joined by `|`.

@post("/api/v1/transfers/on-us/", opt=MOVES_MONEY, ...)
@get("/api/v1/service-accounts/{account_id:str}/", opt=deprecated(since=..., sunset=...), ...)
"""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

Marks = dict[str, Any]

OPEN: Marks = {"door": "open"}
"""No headers are asked for: login, token, health, the reference."""
BEARER: Marks = {"door": "bearer"}
"""A token is enough; key and signature are checked when present: operations of the sandbox."""
SIGNED: Marks = {"door": "signed"}
"""Token, idempotency key and signature. The default."""
UNSIGNED: Marks = {"door": "unsigned"}
"""Token and idempotency key, no signature: uploads of the Partner API."""
MOVES_MONEY: Marks = {"moves_money": True}
"""Counts towards the limit of requests that move money as well."""
ANY_QUERY: Marks = {"any_query": True}
"""The operation reads its query itself; names it does not declare are not refused by the door."""


class Group(NamedTuple):
    """Operations that are counted together, and how many of them are let in per minute."""

    name: str
    per_minute: int


def granted(scope: str, group: Group, *, needs: str | None = None) -> Marks:
    """Ask for an access token of the Customer API with this scope.

    The role of the user must include the scope, or in its place what the operation `needs`.
    """
    return {"door": "granted", "scope": scope, "group": group, "needs": needs or scope}


def deprecated(*, since: date, sunset: date) -> Marks:
    """Mark an operation as on its way out: still answering, announced in its headers."""
    return {"deprecated": (since, sunset)}


def takes_query(*names: str) -> Marks:
    """Declare query names that the function reads from the request itself."""
    return {"query_names": frozenset(names)}


def documented(**extra: Any) -> Marks:
    """Put parts into the description of an operation that its signature does not tell."""
    return {"documented": extra}


def refuses(*codes: str) -> Marks:
    """Name the problems an operation can answer beside those of every operation."""
    return {"problems": codes}


def takes_file(*codes: str) -> Marks:
    """Take a file as the body, read when the caller is known; `codes` as with `refuses`."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    body = {
        "required": True,
        "description": "The bytes of the file, as they are.",
        "content": dict.fromkeys(("application/pdf", "image/png", "image/jpeg"), binary),
    }
    wrong = ("payload-too-large", "unsupported-media-type", "document-not-readable")
    return {"takes_file": True, "problems": (*wrong, *codes)} | documented(requestBody=body)
