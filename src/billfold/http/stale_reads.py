"""Answers of a replica to requests that say how stale they may be: `Cache-Control: max-stale=5` (RFC 9111, 5.2.1.2).

Every answer of both APIs is stale at once, so that the directive is its age. `Age` in the answer says the true one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any, Final

import structlog

from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse
from billfold.ledger.bank import Bank
from billfold.platform.database.replica import AGE_MAX_SECONDS, Replica
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)

_OK: Final = 200
_AGE: Final = b"age"
_ANSWERED_WITHIN_SECONDS: Final = 5.0
_NEVER: Final = frozenset({"no-cache", "no-store"})


class StaleReads:
    """The replica as one API asks it."""

    def __init__(self, bank: Bank, replica: Replica, services: Mapping[str, Any]) -> None:
        self._replica = replica
        self._services = {**services, "bank": bank.read_by(replica.pool)}

    async def respond(self, operation: Operation, request: RawRequest) -> HttpResponse | None:
        """Return the answer of a replica, or None where the primary has to give one, as every refusal."""
        seconds = stale_seconds(request.header(b"cache-control"))
        reading = self._replica.within(seconds) if seconds and operation.may_be_stale else None
        if reading is None:
            return None
        try:
            with self._replica.reading(reading):
                async with asyncio.timeout(_ANSWERED_WITHIN_SECONDS):
                    response = await operation.respond(request, self._services)
        except Exception as error:  # noqa: BLE001 - whatever it is, the primary says the same or answers
            log.debug("replica_left", operation=operation.name, error=error_summary(error))
            return None
        if not isinstance(response, HttpResponse) or response.status != _OK or reading.replayed is None:
            return None
        age = self._replica.age_of(reading.replayed)
        if age is None or age > seconds:  # it took its time
            return None
        return replace(response, headers=[*response.headers, (_AGE, str(ceil(age)).encode())])


def is_stale(response: HttpResponse) -> bool:
    """Tell whether a replica has given an answer, which is for its own moment alone."""
    return any(name == _AGE for name, _ in response.headers)


def stale_seconds(cache_control: str | None) -> int:
    """Return how stale an answer may be: 0 where nothing or something else is asked for."""
    if not cache_control:
        return 0
    asked = dict[str, str]()
    for directive in cache_control.lower().split(","):
        name, _, value = directive.strip().partition("=")
        asked[name.strip()] = value.strip().strip('"')
    if "max-stale" not in asked or asked.keys() & _NEVER:
        return 0
    limits = [asked[name] for name in ("max-stale", "max-age") if asked.get(name)]
    if not all(each.isascii() and each.isdigit() for each in limits):
        return 0
    return min([AGE_MAX_SECONDS, *(int(each[:9]) for each in limits)])
