"""Fetches market data on a schedule: rates and auctions are imported, dealers' quotes composed into prices.

One process at a time fetches. Whatever cannot be used is refused with its reason and takes nothing else with it. Nobody
looks at a fetched file, so a jump of its rates is refused too; an operator imports it by hand.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import asyncpg
import structlog

from billfold.bills.imports import import_auctions, import_rates, import_strike
from billfold.bills.ports import PriceSource, SourceUnavailable
from billfold.bills.published import Published, read_published
from billfold.bills.rules.composite import QuoteLimits, compose
from billfold.bills.types import PriceFile, TwoSidedQuote
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import claimed
from billfold.platform.dates import et_date
from billfold.platform.errors import FieldError, InvalidInput
from billfold.platform.settings.settings import Settings
from billfold.treasury.market_log import market_change, record_strike
from billfold.treasury.price_sources import FILE_BYTES_MAX

log = structlog.get_logger(__name__)

QUOTES = "dealers' quotes"
"""The name under which refusals of the composite are kept, in addition to those of the sources."""
_SHOWN = 5
_LAST = "SELECT max(fetched_at) FROM market_fetch"
_SAVE = """
INSERT INTO market_fetch (source, fetched_at, added_at, refused_at, refusal)
VALUES ($1, $2::timestamptz, CASE WHEN $3::boolean THEN $2::timestamptz END,
        CASE WHEN $4::text IS NOT NULL THEN $2::timestamptz END, $4)
ON CONFLICT (source) DO UPDATE SET fetched_at = $2, added_at = coalesce(excluded.added_at, market_fetch.added_at),
   refused_at = coalesce(excluded.refused_at, market_fetch.refused_at),
   refusal = coalesce(excluded.refusal, market_fetch.refusal)
"""


class PriceFetch:
    """A task of the worker."""

    def __init__(self, sources: Sequence[PriceSource]) -> None:
        self._sources = sources
        self._done: set[bytes] = set()

    async def fetch(self, bank: Bank, *, now: bool = False) -> int:
        """Fetch from all sources if it is time, or `now`; return the number of rows that were added."""
        if not self._sources:
            return 0
        async with claimed(bank.pool, "market.fetch") as is_ours:
            if not is_ours or not (now or await _is_due(bank)):
                return 0
            added, quotes = 0, list[TwoSidedQuote]()
            for source in self._sources:
                added += await self._fetch_source(bank, source, quotes)
            if quotes:
                added += await strike_prices(bank, quotes)
            return added

    async def _fetch_source(self, bank: Bank, source: PriceSource, quotes: list[TwoSidedQuote]) -> int:
        added, refused = 0, list[str]()
        try:
            found = await source.read()
        except SourceUnavailable as error:
            found, refused = (), [str(error)]
        for each in found:
            if isinstance(each, TwoSidedQuote):
                quotes.append(each)
                continue
            try:
                published = await asyncio.to_thread(_read, each)
            except InvalidInput as error:
                refused.append(f"{each.name}: {error.detail}")
                continue
            quotes += published.quotes
            mistakes = list(published.refused)
            added += await self._import(bank, each, published, mistakes)
            refused += [f"{each.name}: {' '.join(map(str, mistake.loc))} {mistake.msg}" for mistake in mistakes]
        await _save(bank, source.name, added=bool(added), refused=refused)
        return added

    async def _import(self, bank: Bank, file: PriceFile, published: Published, mistakes: list[FieldError]) -> int:
        """Import rates and auctions once; a file of which something was refused is tried again."""
        digest = hashlib.sha256(file.content).digest()
        if digest in self._done or not (published.rates or published.auctions):
            return 0
        limit = bank.settings.max_price_jump
        async with bank.pool.acquire() as conn, conn.transaction(), market_change(conn, bank.vault, Origin.system()):
            sold = await import_auctions(conn, published.auctions, refused=mistakes)
            today = await latest_day(bank)
            rates = await import_rates(conn, published.rates, today=today, refused=mistakes, max_jump_bps=limit)
        if not mistakes:
            self._done.add(digest)
        return sold.added + rates.added


async def latest_day(bank: Bank) -> date:
    """Return the last day whose rates may be out. A sandbox may be ahead of the day of the file, or behind."""
    now = await bank.now()
    return et_date(now if bank.settings.is_production else max(now, wall_now()))


async def strike_prices(bank: Bank, quotes: Sequence[TwoSidedQuote], origin: Origin | None = None) -> int:
    """Compose prices from quotes and keep them; return 1 if they are new."""
    limits = quote_limits_of(bank.settings)
    if limits is None:
        await _save(bank, QUOTES, added=False, refused=["quotes are not used: BILLFOLD_MAX_PRICE_AGE is not set"])
        return 0
    made, added = compose(quotes, bank.market, await bank.now(), limits), False
    if made.strike is not None:
        async with bank.pool.acquire() as conn, conn.transaction():
            added = await import_strike(conn, made.strike)
            if added:
                await record_strike(conn, bank.vault, origin or Origin.system(), made.strike.struck_at)
    await _save(bank, QUOTES, added=added, refused=made.refused)
    return int(added)


def quote_limits_of(settings: Settings) -> QuoteLimits | None:
    """Return the limits of quotes; None for a bank that uses none."""
    age = settings.max_price_age
    limits = settings.max_quote_distance, settings.max_price_jump
    return None if age is None else QuoteLimits(timedelta(seconds=age), *limits)


async def list_fetches(bank: Bank) -> list[asyncpg.Record]:
    """Return the state of each source: source, fetched_at, added_at, refused_at, refusal."""
    return await bank.pool.fetch("SELECT * FROM market_fetch ORDER BY source")


def _read(file: PriceFile) -> Published:
    if len(file.content) > FILE_BYTES_MAX:
        raise InvalidInput.at("file", msg=f"is larger than {FILE_BYTES_MAX >> 20} MiB")
    return read_published(file.content)


async def _is_due(bank: Bank) -> bool:
    last: datetime | None = await bank.pool.fetchval(_LAST)
    return last is None or wall_now() - last >= timedelta(seconds=bank.settings.market_fetch_seconds)


async def _save(bank: Bank, source: str, *, added: bool, refused: Sequence[str]) -> None:
    more = f"; {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    refusal = "; ".join(refused[:_SHOWN]) + more if refused else None
    await bank.pool.execute(_SAVE, source, wall_now(), added, refusal)
    if refusal:
        log.warning("market_data_refused", source=source, reason=refusal)
    elif added:
        log.info("market_data_fetched", source=source)
