-- Requests and the links between transfers are lost; what was paid back stays paid.
DROP TABLE reversal_request;
DROP INDEX transfer_reverses;
ALTER TABLE transfer DROP COLUMN reverses_id;
-- A bank that has given a provisional credit cannot go back.
DROP TABLE card_dispute;
DROP INDEX card_payment_entry;
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees',
    'inventory', 'trading_gains', 'redemptions')
  OR kind ~ '^dealer:[a-z0-9][a-z0-9-]{0,31}$');
