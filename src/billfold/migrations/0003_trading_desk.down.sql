-- The orders and executions are lost; a bank that has booked any keeps its accounts, and cannot go back.
DROP TABLE inventory_position, dealer_settlement;
DROP VIEW execution_movement;
DROP TABLE execution, dealer_quote, dealer_order, trading_desk;
ALTER TABLE settlement DROP COLUMN from_inventory;
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees'));
