-- E-mail addresses and telephone numbers of persons are encrypted, and found by a keyed hash of the address. SQL has no
-- key: `billfold migrate up` encrypts the rows that are here. Until then a row has no index.

ALTER TABLE user_account
  DROP CONSTRAINT user_account_email_key,
  DROP CONSTRAINT user_account_email_check,
  DROP CONSTRAINT user_account_phone_number_check,
  ADD COLUMN email_index bytea,
  ADD CONSTRAINT user_account_email_index_key UNIQUE (email_index),
  ADD CONSTRAINT user_account_email_check CHECK (
    CASE WHEN email_index IS NULL
      THEN email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
      ELSE starts_with(email, 'sealed:') END
  ),
  ADD CONSTRAINT user_account_phone_number_check CHECK (
    phone_number ~ '^\+[1-9][0-9]{1,14}$' OR starts_with(phone_number, 'sealed:')
  );
CREATE UNIQUE INDEX user_account_plain_email ON user_account (email) WHERE email_index IS NULL;

ALTER TABLE invitation
  DROP CONSTRAINT invitation_customer_id_email_key,
  DROP CONSTRAINT invitation_email_check,
  DROP CONSTRAINT invitation_phone_number_check,
  ADD COLUMN email_index bytea,
  ADD CONSTRAINT invitation_customer_id_email_index_key UNIQUE (customer_id, email_index),
  ADD CONSTRAINT invitation_email_check CHECK (
    CASE WHEN email_index IS NULL
      THEN email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
      ELSE starts_with(email, 'sealed:') END
  ),
  ADD CONSTRAINT invitation_phone_number_check CHECK (
    phone_number ~ '^\+[1-9][0-9]{1,14}$' OR starts_with(phone_number, 'sealed:')
  );
CREATE UNIQUE INDEX invitation_plain_email ON invitation (customer_id, email) WHERE email_index IS NULL;

-- Recipient and subject of an e-mail are encrypted with its text, and go when it was sent.
ALTER TABLE outbound_email ALTER COLUMN recipient DROP NOT NULL, ALTER COLUMN subject DROP NOT NULL;
UPDATE outbound_email SET recipient = NULL, subject = NULL WHERE sent_at IS NOT NULL;

-- The sentence of a notification, and the name that a file was uploaded with.
ALTER TABLE notification
  DROP CONSTRAINT notification_description_check,
  ADD CONSTRAINT notification_description_check CHECK (
    length(description) <= 2000 OR starts_with(description, 'sealed:')
  );
ALTER TABLE document
  DROP CONSTRAINT document_name_check,
  ADD CONSTRAINT document_name_check CHECK (length(name) <= 255 OR starts_with(name, 'sealed:'));
