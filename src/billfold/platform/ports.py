"""The providers of one process, found by the type of the port that they serve."""

from __future__ import annotations

from typing import Any, TypeVar

Port = TypeVar("Port")


class Ports:
    """External systems and objects that a process shares, found by type: `ports[FileStore]`.

    A part declares its port as a class. Only the wiring knows which class provides it.
    """

    def __init__(self) -> None:
        self._providers: dict[type, Any] = {}

    def __getitem__(self, port: type[Port]) -> Port:
        """Return the provider of a port. Raises KeyError when none is set."""
        found: Port = self._providers[port]
        return found

    def get(self, port: type[Port]) -> Port | None:
        """Return the provider of a port, or None."""
        return self._providers.get(port)

    def __setitem__(self, port: type[Port], provider: Port | None) -> None:
        if provider is None:
            self._providers.pop(port, None)
        else:
            self._providers[port] = provider

    def copy(self) -> Ports:
        """Return the same providers, of which some can be replaced."""
        other = Ports()
        other._providers.update(self._providers)
        return other
