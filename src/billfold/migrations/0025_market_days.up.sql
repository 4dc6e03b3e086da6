-- An override of a day says only what the operator named: null follows the calendars.
ALTER TABLE calendar_override
  ALTER bond_market DROP NOT NULL,
  ALTER fed DROP NOT NULL,
  DROP CONSTRAINT calendar_override_bond_market_check,
  DROP CONSTRAINT calendar_override_check;
UPDATE calendar_override SET bond_market = 'open' WHERE bond_market = 'early';
ALTER TABLE calendar_override
  ADD CONSTRAINT calendar_override_bond_market CHECK (bond_market IN ('open', 'closed')),
  ADD CONSTRAINT calendar_override_closes_at CHECK (closes_at IS NULL OR bond_market IS DISTINCT FROM 'closed'),
  ADD CONSTRAINT calendar_override_names CHECK (num_nonnulls(bond_market, closes_at, fed) > 0);

-- Cash that waits for an opening of the market is looked for when newer market data has come.
CREATE INDEX pocket_invest_at ON pocket (invest_at) WHERE invest_at IS NOT NULL;
