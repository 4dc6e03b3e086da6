DROP FUNCTION ledger_book;
DROP TYPE new_transaction;
DROP INDEX customer_partner, pocket_partner, portal_pocket, counterparty_list, wire_partner, wire_customer, ach_entry_list,
  transfer_request_list, authorization_request_list, transaction_partner, rail_file_list, security_transfer_list;
ALTER TABLE customer DROP COLUMN written_no;
ALTER TABLE pocket DROP COLUMN written_no;
ALTER TABLE portal DROP COLUMN written_no;
ALTER TABLE counterparty DROP COLUMN written_no;
ALTER TABLE wire DROP COLUMN written_no;
ALTER TABLE ach_entry DROP COLUMN written_no;
ALTER TABLE transfer_request DROP COLUMN written_no;
ALTER TABLE authorization_request DROP COLUMN written_no;
ALTER TABLE approval_rule DROP COLUMN written_no;
ALTER TABLE transaction DROP COLUMN written_no;
ALTER TABLE rail_file DROP COLUMN written_no;
ALTER TABLE security_transfer DROP COLUMN written_no;
ALTER TABLE suspense_item DROP COLUMN written_no;
ALTER TABLE wire_case DROP COLUMN written_no;
CREATE INDEX customer_partner ON customer (partner_id, opened_at, customer_id);
CREATE INDEX pocket_partner ON pocket (partner_id, opened_at, pocket_id);
CREATE INDEX portal_pocket ON portal (customer_id, pocket_id, created_at, portal_id);
CREATE INDEX counterparty_list ON counterparty (customer_id, created_at, counterparty_id);
CREATE INDEX wire_partner ON wire (partner_id, created_at, wire_id);
CREATE INDEX wire_customer ON wire (customer_id, created_at, wire_id);
CREATE INDEX ach_entry_list ON ach_entry (customer_id, created_at, ach_id) WHERE way = 'ORIGINATION';
CREATE INDEX transfer_request_list ON transfer_request (customer_id, created_at, request_id);
CREATE INDEX authorization_request_list ON authorization_request (customer_id, created_at, request_id);
CREATE INDEX transaction_partner ON transaction (partner_id, booked_at, activity_id);
CREATE INDEX rail_file_list ON rail_file (created_at, file_id);
CREATE INDEX security_transfer_list ON security_transfer (created_at, transfer_id);
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], entries journal_entry[],
  postings posting[], chain_entries chain_entry[], trades trade[], transactions transaction[], events new_event[], commands command[],
  names directory[], transfers transfer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal_entry SELECT * FROM unnest(entries);
  INSERT INTO posting SELECT * FROM unnest(postings);
  PERFORM ledger_move(cardinality(entries), cardinality(postings), heads, bases);
  PERFORM pockets_move(moved);
  INSERT INTO chain_entry SELECT * FROM unnest(chain_entries);
  INSERT INTO trade SELECT * FROM unnest(trades);
  INSERT INTO transaction SELECT * FROM unnest(transactions);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
END $$;
