DROP TABLE cash_back, cash_back_rule, card_settlement_record, card_settlement_file;
DROP INDEX card_payment_settles, card_payment_created;
ALTER TABLE suspense_item DROP CONSTRAINT suspense_item_check2, DROP CONSTRAINT suspense_item_status_check;
ALTER TABLE suspense_item
  ADD CONSTRAINT suspense_item_status_check CHECK (status IN ('HELD', 'RETURNED', 'ASSIGNED')),
  ADD CONSTRAINT suspense_item_check2 CHECK ((status = 'RETURNED') = (return_reason IS NOT NULL));
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE'));
ALTER TABLE clearing DROP CONSTRAINT clearing_rail_check;
ALTER TABLE clearing ADD CONSTRAINT clearing_rail_check CHECK (rail IN ('ACH', 'WIRE'));
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
  'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses'));
