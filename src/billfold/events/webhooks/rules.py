"""Delivery outcomes and validation of subscriptions. Pure; `now` is wall time."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from uuid import UUID

from billfold.events.webhooks.store import DeliveryOutcome, RetryPolicy
from billfold.platform.errors import FieldError

JITTER = 0.2
"""The fraction by which a delay varies, so that retries do not arrive in bursts."""
RETRY_AFTER_MAX = timedelta(hours=1)
"""The longest Retry-After that is honored."""

_RETRY_AFTER_CODES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_LOWEST_STATUS = 100
_STEPS = 2**32 - 1


def delivery_outcome(
    policy: RetryPolicy | None, *, tries: int, code: int, retry_after: str | None, now: datetime, jitter: float
) -> DeliveryOutcome:
    """Return the consequence of the answer to try number `tries`. `spread` is -1 to 1."""
    if HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES:
        return DeliveryOutcome(state="delivered")
    if code == HTTPStatus.GONE:
        return DeliveryOutcome(state="failed", gone=True)
    paused_until = parse_retry_after(retry_after, now) if code in _RETRY_AFTER_CODES else None
    if policy is None or tries >= policy.maximum_attempts or not is_retryable(policy, code):
        return DeliveryOutcome(state="failed", paused_until=paused_until)
    due_at = now + retry_delay(policy, tries) * (1 + JITTER * jitter)
    return DeliveryOutcome(state="pending", due_at=max(due_at, paused_until or due_at), paused_until=paused_until)


def is_retryable(policy: RetryPolicy, code: int) -> bool:
    """Return whether an unsuccessful answer is followed by another try; 0 is no answer."""
    return not policy.retry_on_status_codes or code in policy.retry_on_status_codes


def retry_delay(policy: RetryPolicy, tries: int) -> timedelta:
    """Return the delay after try number `tries`: min(maximum, initial x coefficient^(n-1)).

    For a coefficient of 1 or more, the power is not computed once it is beyond any maximum.
    """
    longest = policy.maximum_interval_seconds
    seconds = policy.initial_interval_seconds
    for _ in range(1, tries):
        seconds *= policy.backoff_coefficient
        if seconds >= longest:
            break
    return timedelta(seconds=min(seconds, longest))


def delivery_jitter(subscription_id: UUID, event_id: UUID, tries: int) -> float:
    """Return a number from -1 to 1 that is unpredictable but always the same for one attempt."""
    seed_bytes = subscription_id.bytes + event_id.bytes + tries.to_bytes(8)
    mixed = hashlib.blake2b(seed_bytes, digest_size=4, person=b"billfold.spread").digest()
    return int.from_bytes(mixed) / _STEPS * 2 - 1


def parse_retry_after(retry_after: str | None, now: datetime) -> datetime | None:
    """Return until when to wait after a Retry-After, an hour at most, or None."""
    if not retry_after:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return now + min(RETRY_AFTER_MAX, timedelta(seconds=min(int(text[:9]), RETRY_AFTER_MAX.total_seconds())))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        # A receiver may write anything: years and offsets beyond any number too.
        return None
    until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
    return min(until, now + RETRY_AFTER_MAX) if until > now else None


def policy_errors(policy: RetryPolicy) -> Iterator[FieldError]:
    """Yield the errors in a retry policy besides the limits of each field."""
    if policy.maximum_interval_seconds < policy.initial_interval_seconds:
        loc = ("body", "retry_policy", "maximum_interval_seconds")
        yield FieldError(loc, "must not be less than the initial interval", "value_error")
    if any(0 < code < _LOWEST_STATUS for code in policy.retry_on_status_codes):
        loc = ("body", "retry_policy", "retry_on_status_codes")
        yield FieldError(loc, "must be status codes, or 0 for no answer", "value_error")
