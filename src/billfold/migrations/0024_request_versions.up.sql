-- Which content of a transfer request this is, from the second on. Null is the first: the fingerprints of
-- rows that were never changed stay what they are.
ALTER TABLE transfer_request ADD COLUMN version int CHECK (version > 1);
