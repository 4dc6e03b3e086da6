-- Fails while a row is encrypted: an earlier release could not read it.
ALTER TABLE document
  DROP CONSTRAINT document_name_check,
  ADD CONSTRAINT document_name_check CHECK (length(name) <= 255);
ALTER TABLE notification
  DROP CONSTRAINT notification_description_check,
  ADD CONSTRAINT notification_description_check CHECK (length(description) <= 2000);

UPDATE outbound_email SET recipient = '', subject = '' WHERE sent_at IS NOT NULL;
ALTER TABLE outbound_email ALTER COLUMN recipient SET NOT NULL, ALTER COLUMN subject SET NOT NULL;

DROP INDEX invitation_plain_email;
ALTER TABLE invitation
  DROP CONSTRAINT invitation_customer_id_email_index_key,
  DROP CONSTRAINT invitation_email_check,
  DROP CONSTRAINT invitation_phone_number_check,
  DROP COLUMN email_index,
  ADD CONSTRAINT invitation_email_check CHECK (
    email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
  ),
  ADD CONSTRAINT invitation_phone_number_check CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  ADD CONSTRAINT invitation_customer_id_email_key UNIQUE (customer_id, email);

DROP INDEX user_account_plain_email;
ALTER TABLE user_account
  DROP CONSTRAINT user_account_email_index_key,
  DROP CONSTRAINT user_account_email_check,
  DROP CONSTRAINT user_account_phone_number_check,
  DROP COLUMN email_index,
  ADD CONSTRAINT user_account_email_check CHECK (
    email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
  ),
  ADD CONSTRAINT user_account_phone_number_check CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  ADD CONSTRAINT user_account_email_key UNIQUE (email);
