ALTER TABLE oauth_grant DROP COLUMN last_used_at;
