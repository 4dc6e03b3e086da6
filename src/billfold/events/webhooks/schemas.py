"""Bodies of requests that create, change and repair webhook subscriptions."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.events.webhooks.rules import KEY_BYTES_MIN
from billfold.events.webhooks.store import RetryPolicy
from billfold.http.raw_request import instant_in_body
from billfold.http.schemas import WallTime

URL_CHARS_MAX, SECRET_CHARS_MAX, DESCRIPTION_CHARS_MAX = 2083, 256, 500
SECONDS_MIN, SECONDS_MAX = 30, 86_400
Url = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=URL_CHARS_MAX,
        extra_json_schema={"format": "uri"},
        description="Where events are sent: https, on the internet, without user name or password.",
    ),
]
_SEVERAL = msgspec.Meta(min_length=1, max_length=100, description="Types of `/api/v1/events/types/`.")
Secret = Annotated[
    str,
    msgspec.Meta(
        min_length=KEY_BYTES_MIN,
        max_length=SECRET_CHARS_MAX,
        description="The HMAC key of the deliveries, 24 bytes or more. After `whsec_` it is base64.",
    ),
]
Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS_MAX)]
Code = Annotated[int, msgspec.Meta(ge=0, le=599)]
Interval = Annotated[float, msgspec.Meta(ge=SECONDS_MIN, le=SECONDS_MAX)]


class Retries(RetryPolicy, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a failed delivery is retried. All five fields are required.

    An empty `retry_on_status_codes` means every response but a 2xx, and no response; in the list 0 stands for
    no response. `maximum_attempts` includes the first attempt.
    """

    retry_on_status_codes: Annotated[list[Code], msgspec.Meta(max_length=100)]
    backoff_coefficient: Annotated[float, msgspec.Meta(ge=1, le=1000)]
    maximum_attempts: Annotated[int, msgspec.Meta(ge=1, le=20)]
    initial_interval_seconds: Interval
    maximum_interval_seconds: Interval


class NewSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where to send which types of events. Without a retry policy there is one attempt."""

    url: Url
    events: list[str]
    shared_secret: Secret
    description: Description = ""
    retry_policy: Retries | None = None


class ChangedSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What to change; a field that is left out stays as it is. `retry_policy` null removes the policy."""

    url: Url | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    shared_secret: Secret | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    retry_policy: Retries | UnsetType | None = UNSET
    status: Literal["enabled", "disabled"] | UnsetType = UNSET


def body_for(body: type, name: str, kinds: tuple[str, ...], *default: Any) -> Any:  # noqa: ANN401 - a type
    """Return the body as one API accepts it: with its event types."""
    events = Annotated[list[Literal[kinds]], _SEVERAL]  # type: ignore[valid-type]
    field = ("events", events | UnsetType, *default) if default else ("events", events)
    namespace = {"__doc__": body.__doc__}
    return msgspec.defstruct(
        name, [field], bases=(body,), namespace=namespace, kw_only=True, forbid_unknown_fields=True
    )


class Resend(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which event to deliver again."""

    event_id: UUID


class Since(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """From when on to deliver again. It is in the body because a query is not signed."""

    since: WallTime

    def instant(self) -> datetime:
        """Return the time in UTC. Raises InvalidInput without an offset."""
        return instant_in_body("since", self.since)


class Example(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The type of the example event; by default the first type of the subscription."""

    event_type: str | None = None
