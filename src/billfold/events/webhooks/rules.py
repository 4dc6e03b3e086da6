"""What follows from an answer, and what a subscription may say. Pure; `now` is wall time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from uuid import UUID

from billfold.events.webhooks.types import Outcome, RetryPolicy
from billfold.platform.crypto import webhook_key
from billfold.platform.errors import FieldError, InvalidInput

SECRET_CHARS_MIN, SECRET_CHARS_GOOD = 16, 24
ATTEMPTS_MAX = 20
COEFFICIENT_MAX = 1_000
INTERVAL_SECONDS = (30.0, 86_400.0)
SPREAD = 0.2
"""By how much of itself a delay may be shorter or longer, so that repeats do not come in crowds."""
REST_MAX = timedelta(hours=1)
"""The longest Retry-After that is obeyed."""
OVERLAP = timedelta(hours=24)
"""How long a secret that was replaced still signs beside the new one."""

_ASKS_FOR_REST = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_KEY_BYTES_MIN = 16
_CODES = range(100, 600)
_STEPS = 2**32 - 1


def outcome_of(
    policy: RetryPolicy | None,
    *,
    tries: int,
    code: int,
    retry_after: str | None,
    now: datetime,
    spread: float,
) -> Outcome:
    """Return what follows from the answer to try number `tries`. `spread` is -1 to 1."""
    if HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES:
        return Outcome(state="delivered")
    if code == HTTPStatus.GONE:
        return Outcome(state="failed", gone=True)
    rests_until = rest_asked_for(retry_after, now) if code in _ASKS_FOR_REST else None
    if policy is None or tries >= policy.maximum_attempts or not is_repeated(policy, code):
        return Outcome(state="failed", rests_until=rests_until)
    due_at = now + delay(policy, tries) * (1 + SPREAD * spread)
    return Outcome(
        state="pending", due_at=max(due_at, rests_until or due_at), rests_until=rests_until
    )


def is_repeated(policy: RetryPolicy, code: int) -> bool:
    """Tell whether an answer that is no success is followed by another try; 0 is no answer."""
    return not policy.retry_on_status_codes or code in policy.retry_on_status_codes


def delay(policy: RetryPolicy, tries: int) -> timedelta:
    """Return how long to wait after try number `tries`: min(maximum, initial x coefficient^(n-1)).

    A coefficient of 1 and more: the power is not computed once it is beyond any maximum.
    """
    longest = policy.maximum_interval_seconds
    seconds = policy.initial_interval_seconds
    for _ in range(1, tries):
        seconds *= policy.backoff_coefficient
        if seconds >= longest:
            break
    return timedelta(seconds=min(seconds, longest))


def spread_of(subscription_id: UUID, event_id: UUID, tries: int) -> float:
    """Return a number from -1 to 1 that nobody can tell in advance and that is always the same."""
    told = subscription_id.bytes + event_id.bytes + tries.to_bytes(8)
    mixed = hashlib.blake2b(told, digest_size=4, person=b"billfold.spread").digest()
    return int.from_bytes(mixed) / _STEPS * 2 - 1


def rest_asked_for(retry_after: str | None, now: datetime) -> datetime | None:
    """Return until when a Retry-After asks us to wait, an hour at most, or None."""
    if not retry_after:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return now + min(REST_MAX, timedelta(seconds=min(int(text[:9]), REST_MAX.total_seconds())))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        # A receiver may write what it likes: years and offsets beyond any number too.
        return None
    until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
    return min(until, now + REST_MAX) if until > now else None


def check_secret(secret: str) -> None:
    """Refuse a secret that is too short or is no base64 after `whsec_`. Raises InvalidInput."""
    wrong = None
    try:
        key = webhook_key(secret)
    except ValueError:
        wrong = "must be base64 after whsec_"
    else:
        if len(secret) < SECRET_CHARS_MIN:
            wrong = f"must have at least {SECRET_CHARS_MIN} characters"
        elif len(key) < _KEY_BYTES_MIN:
            wrong = f"must stand for at least {_KEY_BYTES_MIN} bytes"
    if wrong is not None:
        raise InvalidInput.at("body", "shared_secret", msg=wrong)


def is_weak_secret(secret: str) -> bool:
    """Tell whether a secret is accepted though it is shorter than it should be."""
    return len(webhook_key(secret)) < SECRET_CHARS_GOOD


def check_policy(policy: RetryPolicy) -> None:
    """Refuse a retry policy that cannot be kept. Raises InvalidInput with every mistake."""
    mistakes = [
        FieldError(("body", "retry_policy", name), msg, "value_error")
        for name, msg in _mistakes_of(policy)
    ]
    if mistakes:
        raise InvalidInput(mistakes)


def _mistakes_of(policy: RetryPolicy) -> Iterator[tuple[str, str]]:
    shortest, longest = INTERVAL_SECONDS
    initial, most = policy.initial_interval_seconds, policy.maximum_interval_seconds
    if not all(code == 0 or code in _CODES for code in policy.retry_on_status_codes):
        yield "retry_on_status_codes", "must be status codes, or 0 for no answer"
    if not 1 <= policy.backoff_coefficient <= COEFFICIENT_MAX:
        yield "backoff_coefficient", f"must be 1 to {COEFFICIENT_MAX}"
    if not 1 <= policy.maximum_attempts <= ATTEMPTS_MAX:
        yield "maximum_attempts", f"must be 1 to {ATTEMPTS_MAX}"
    if not shortest <= initial <= longest:
        yield "initial_interval_seconds", f"must be {shortest:.0f} to {longest:.0f}"
    if not initial <= most <= longest:
        yield "maximum_interval_seconds", f"must be from the initial one to {longest:.0f}"
