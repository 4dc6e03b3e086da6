-- What a process compares its settings with before it does anything: a value sealed under the
-- bank's key, and the domain that links, tokens and passkeys name.
ALTER TABLE bank ADD COLUMN key_check bytea, ADD COLUMN domain text;
