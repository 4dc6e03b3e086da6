DROP INDEX pocket_invest_at;
ALTER TABLE calendar_override
  DROP CONSTRAINT calendar_override_bond_market,
  DROP CONSTRAINT calendar_override_closes_at,
  DROP CONSTRAINT calendar_override_names;
UPDATE calendar_override
   SET bond_market = CASE WHEN closes_at IS NULL THEN coalesce(bond_market, 'open') ELSE 'early' END,
       fed = coalesce(fed, 'open');
ALTER TABLE calendar_override
  ALTER bond_market SET NOT NULL,
  ALTER fed SET NOT NULL,
  ADD CONSTRAINT calendar_override_bond_market_check CHECK (bond_market IN ('open', 'early', 'closed')),
  ADD CONSTRAINT calendar_override_check CHECK ((bond_market = 'early') = (closes_at IS NOT NULL));
