ALTER TABLE partner_user ADD COLUMN failures int NOT NULL DEFAULT 0 CHECK (failures >= 0),
  ADD COLUMN locked_until timestamptz;
DELETE FROM login_attempt WHERE factor = 'partner';
ALTER TABLE login_attempt DROP CONSTRAINT login_attempt_factor_check;
ALTER TABLE login_attempt ADD CONSTRAINT login_attempt_factor_check CHECK (factor IN ('password', 'code', 'address'));
