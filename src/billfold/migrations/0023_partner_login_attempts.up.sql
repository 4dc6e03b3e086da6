-- Attempts of partner users are counted where those of all others are, before they are checked.
ALTER TABLE login_attempt DROP CONSTRAINT login_attempt_factor_check;
ALTER TABLE login_attempt ADD CONSTRAINT login_attempt_factor_check
  CHECK (factor IN ('password', 'code', 'address', 'partner'));
ALTER TABLE partner_user DROP COLUMN failures, DROP COLUMN locked_until;
