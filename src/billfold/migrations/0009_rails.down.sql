ALTER TABLE counterparty DROP COLUMN details;
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
  'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve'));
DROP TABLE rail_file;
DROP TABLE agenda;
