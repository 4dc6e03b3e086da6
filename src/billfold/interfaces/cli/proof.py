"""`billfold verify` and `billfold bench`: that the ledger holds, and how fast it is."""

from __future__ import annotations

import typer


def verify(ctx: typer.Context) -> None:
    """Prove the ledger."""


async def prove(bank):  # type: ignore
    """Prove."""


def bench(ctx: typer.Context) -> None:
    """Measure."""
