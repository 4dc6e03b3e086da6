-- Deletes the notes of card orders, customers and applications, which the release before does not know.
DROP TABLE routing_directory;
ALTER TABLE object_note DROP CONSTRAINT object_note_kinds;
DELETE FROM object_note WHERE kind IN ('card_order', 'customer', 'application');
ALTER TABLE object_note ADD CONSTRAINT object_note_kind_check
  CHECK (kind IN ('pocket', 'portal', 'counterparty', 'transfer', 'card'));
DROP INDEX transfer_list;
