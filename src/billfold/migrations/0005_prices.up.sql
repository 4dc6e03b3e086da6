-- Prices: the composites of dealers' quotes that bills were priced by, and the state of each source of market data.

-- One row per composite, never changed. `struck_at` is the newest quote in it, `oldest_at` the oldest one. `points` are
-- the bills, each with its rates, and all quotes they come from.
CREATE TABLE price_strike (
  struck_at    timestamptz PRIMARY KEY,
  day          date NOT NULL,
  oldest_at    timestamptz NOT NULL,
  points       json NOT NULL,
  recorded_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK (oldest_at <= struck_at)
);
CREATE INDEX price_strike_day ON price_strike (day, struck_at DESC);

-- One row per source: its last fetch, the last one that brought something new, and the last refusal. Wall time.
CREATE TABLE market_fetch (
  source      text PRIMARY KEY,
  fetched_at  timestamptz NOT NULL,
  added_at    timestamptz,
  refused_at  timestamptz,
  refusal     text
);

GRANT UPDATE ON market_fetch TO billfold_app;
