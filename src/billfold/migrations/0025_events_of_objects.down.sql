DROP INDEX audit_entry_resource;
ALTER TABLE request_log DROP COLUMN refusal, DROP COLUMN idempotency_key;
ALTER TABLE event_sequence DROP COLUMN object_id;
DROP INDEX event_sequence_customer_kind, event_sequence_partner_kind;
