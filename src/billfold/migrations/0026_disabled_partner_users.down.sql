ALTER TABLE partner_user DROP COLUMN disabled_at;
