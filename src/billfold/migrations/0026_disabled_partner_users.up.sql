-- A user who may not log in again. The name stays taken: entries of logs name it.
ALTER TABLE partner_user ADD COLUMN disabled_at timestamptz;
