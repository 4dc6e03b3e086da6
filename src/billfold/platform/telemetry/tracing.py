"""Spans of requests, commands, batches, jobs and webhook deliveries, by OpenTelemetry where it is switched on.

No library is imported before `start_tracing`; until then a span costs one attribute access. Spans name operations,
kinds and hosts: no path, no query, no address of a caller, no id of a customer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from billfold import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

Attributes = Mapping[str, str | int | float | bool]
INSTALL = "Traces need OpenTelemetry: pip install 'billfold[otel]'"


class Tracing:
    """The tracer of this process, if it has one."""

    def __init__(self) -> None:
        self._library: Any = None
        self._tracer: Any = None
        self._propagator: Any = None
        self._provider: TracerProvider | None = None

    @property
    def is_on(self) -> bool:
        """Return whether spans are recorded."""
        return self._tracer is not None

    def start(self, provider: TracerProvider) -> None:
        """Record spans from now on."""
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self._library, self._provider = trace, provider
        self._tracer = provider.get_tracer("billfold", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def stop(self) -> None:
        """Export the recorded spans and stop recording."""
        if self._provider is not None:
            self._provider.shutdown()
        self.__init__()  # type: ignore[misc]  # as it began

    @contextmanager
    def span(
        self,
        name: str,
        kind: str = "INTERNAL",
        attributes: Attributes | None = None,
        *,
        received: Mapping[str, str] | None = None,
        links: Iterable[Any] = (),
    ) -> Iterator[Any]:
        """Record the context as a span; an error ends it with an error. Call it only if `is_on`.

        Its parent is the span of the caller, or the one in the headers that were `received`.
        """
        with self._tracer.start_as_current_span(
            name,
            context=None if received is None else self._propagator.extract(received),
            kind=self._library.SpanKind[kind],
            attributes=attributes,
            links=[self._library.Link(each) for each in links if each is not None],
        ) as span:
            yield span

    def current(self) -> Any:  # noqa: ANN401 - of the library
        """Return the context of the caller's span, or None."""
        if self._tracer is None:
            return None
        context = self._library.get_current_span().get_span_context()
        return context if context.is_valid else None

    def current_ids(self) -> dict[str, str]:
        """Return trace and span of the caller under the names of the log."""
        context = self.current()
        if context is None:
            return {}
        return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}

    def send_with(self, headers: MutableMapping[str, str]) -> None:
        """Add the header that makes the receiver's spans children of the caller's span."""
        if self._tracer is not None:
            self._propagator.inject(headers)


tracing = Tracing()
"""The tracer of this process; there is only one."""


def start_tracing(role: str) -> None:
    """Export spans by OTLP to the destination of the OTEL_ variables. Raises ImportError naming the missing package."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ImportError(INSTALL) from error
    own = Resource({"service.name": f"billfold-{role}", "service.version": __version__})
    provider = TracerProvider(resource=Resource.create().merge(own).merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracing.start(provider)
