-- The quotes that bills were priced by are lost; their prices stay in the trades.
DROP TABLE market_fetch, price_strike;
