"""All operations of the sandbox, ready to be mounted on the Partner API."""

from __future__ import annotations

from billfold.http.operations import Operation, operations_below


def sandbox_operations() -> list[Operation]:
    """Return the operations of every module here."""
    return operations_below("billfold.sandbox")
