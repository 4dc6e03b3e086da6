ALTER TABLE oauth_client DROP COLUMN owner_id;
