-- The instructions are lost. A bank that expects redemptions, or has exchanged files with a custodian, cannot go back.
DROP INDEX security_transfer_id;
ALTER TABLE dealer_settlement DROP COLUMN difference;
ALTER TABLE dealer_settlement DROP COLUMN instruction_id;
DROP TABLE settlement_difference, settlement_instruction;
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD'));
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees',
    'inventory', 'trading_gains')
  OR kind ~ '^dealer:[a-z0-9][a-z0-9-]{0,31}$');
