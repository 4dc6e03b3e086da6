"""Metrics of a process: the instruments, under the names that Prometheus shows.

Nothing is counted, and no library is imported, until `start_metrics`. Labels have few values: operations, codes, kinds;
never a path, an address or an id.
"""

from collections.abc import Sequence
from typing import Any

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_COMMANDS_OF_A_BATCH = (1, 2, 5, 10, 30, 100, 300, 1000)


class Instrument:
    """One metric of this process; its methods do nothing before it is started."""

    def __init__(
        self,
        kind: str,
        name: str,
        about: str,
        *labels: str,
        buckets: Sequence[float] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.about = about
        self.labels = labels
        self.buckets = buckets
        self._metric: Any = None

    def start(self, library: Any) -> None:  # noqa: ANN401 - a module
        """Start the metric. For several processes shown as one, a gauge is the sum over those alive."""
        if self._metric is None:
            options: dict[str, Any] = {"multiprocess_mode": "livesum"} if self.kind == "Gauge" else {}
            options |= {} if self.buckets is None else {"buckets": self.buckets}
            self._metric = getattr(library, self.kind)(self.name, self.about, self.labels, **options)

    def add(self, *labels: str, by: float = 1) -> None:
        """Increase a counter."""
        if self._metric is not None:
            self._of(labels).inc(by)

    def observe(self, value: float, *labels: str) -> None:
        """Record a value in a histogram."""
        if self._metric is not None:
            self._of(labels).observe(value)

    def set(self, value: float, *labels: str) -> None:
        """Set the value of a gauge."""
        if self._metric is not None:
            self._of(labels).set(value)

    def _of(self, labels: Sequence[str]) -> Any:  # noqa: ANN401 - a metric of the library
        return self._metric.labels(*labels) if labels else self._metric


REQUESTS = Instrument(
    "Counter", "billfold_http_requests_total", "Requests answered, by operation and status.", "operation", "status"
)
REQUEST_SECONDS = Instrument(
    "Histogram",
    "billfold_http_request_seconds",
    "Time from a request's headers to the end of its response.",
    "operation",
    buckets=_SECONDS,
)
REFUSALS = Instrument("Counter", "billfold_refusals_total", "Requests refused, by the code of the problem.", "code")
SIGN_IN_FAILURES = Instrument(
    "Counter", "billfold_sign_in_failures_total", "Sign-ins that failed, by what was wrong.", "wrong"
)
COMMANDS = Instrument(
    "Counter",
    "billfold_commands_total",
    "Commands of the ledger, by kind and outcome: accepted, refused, replayed or failed.",
    *("kind", "outcome"),
)
COMMANDS_WAITING = Instrument("Gauge", "billfold_commands_waiting", "Commands that wait for a batch.")
BATCH_COMMANDS = Instrument(
    "Histogram", "billfold_batch_commands", "Commands in a committed batch.", buckets=_COMMANDS_OF_A_BATCH
)
BATCH_SECONDS = Instrument(
    "Histogram", "billfold_batch_seconds", "Time in which a batch was planned and committed.", buckets=_SECONDS
)
WEBHOOK_DELIVERIES = Instrument(
    "Counter", "billfold_webhook_deliveries_total", "Attempts to deliver an event, by outcome.", "outcome"
)
WEBHOOK_SECONDS = Instrument(
    "Histogram", "billfold_webhook_delivery_seconds", "Time that receivers took to answer.", buckets=_SECONDS
)
WORKER_FAILURES = Instrument(
    "Counter", "billfold_worker_failures_total", "Rounds of a worker's task that failed.", "task"
)
MASTER_KEY_FAILURES = Instrument(
    "Counter", "billfold_master_key_failures_total", "Calls of a master key's service that failed."
)
POOL_CONNECTIONS = Instrument(
    "Gauge", "billfold_pool_connections", "Connections to the database, by state: used or idle.", "state"
)
POOL_CONNECTIONS_MAX = Instrument(
    "Gauge", "billfold_pool_connections_max", "Connections to the database that the processes may open."
)
INSTRUMENTS = (
    *(REQUESTS, REQUEST_SECONDS, REFUSALS, SIGN_IN_FAILURES),
    *(COMMANDS, COMMANDS_WAITING, BATCH_COMMANDS, BATCH_SECONDS),
    *(
        WEBHOOK_DELIVERIES,
        WEBHOOK_SECONDS,
        WORKER_FAILURES,
        MASTER_KEY_FAILURES,
        POOL_CONNECTIONS,
        POOL_CONNECTIONS_MAX,
    ),
)


def start_metrics() -> None:
    """Count in this process; in the files of PROMETHEUS_MULTIPROC_DIR if its environment names a folder."""
    import prometheus_client  # noqa: PLC0415 - only where somebody reads it

    for each in INSTRUMENTS:
        each.start(prometheus_client)
