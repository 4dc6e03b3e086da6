ALTER TABLE client_key DROP COLUMN registered_by;
DROP INDEX oauth_client_customer;
ALTER TABLE oauth_client DROP CONSTRAINT oauth_client_is_member;
ALTER TABLE oauth_client DROP COLUMN member_id;
DROP TABLE invitation;
