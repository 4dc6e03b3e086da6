DROP TABLE crypto_deposit;
DROP TABLE chain_transfer;
DROP TABLE chain_block;
DROP TABLE chain_cursor;
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
  'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense'));
ALTER TABLE suspense_item DROP CONSTRAINT suspense_item_rail_check;
ALTER TABLE suspense_item ADD CONSTRAINT suspense_item_rail_check CHECK (rail IN ('ACH', 'WIRE'));
DROP INDEX portal_wallet_address, portal_address_index;
ALTER TABLE portal DROP CONSTRAINT portal_wallet, DROP COLUMN chain, DROP COLUMN wallet_address, DROP COLUMN asset,
  DROP COLUMN xpub_id, DROP COLUMN address_index;
DROP TABLE wallet_xpub;
DROP SEQUENCE wallet_index;
