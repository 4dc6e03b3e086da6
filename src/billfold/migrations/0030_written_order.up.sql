-- In which order rows were written. Lists go by it within one instant: the clock of a sandbox stands still, and ids
-- are hashes. What is there already keeps the order in which it was listed.
DROP INDEX customer_partner, pocket_partner, portal_pocket, counterparty_list, wire_partner, wire_customer, ach_entry_list,
  transfer_request_list, authorization_request_list, transaction_partner, rail_file_list, security_transfer_list;

DO $$
DECLARE
  listed record;
BEGIN
  FOR listed IN
    SELECT * FROM (VALUES
      ('customer', 'opened_at, customer_id'),
      ('pocket', 'opened_at, pocket_id'),
      ('portal', 'created_at, portal_id'),
      ('counterparty', 'created_at, counterparty_id'),
      ('wire', 'created_at, wire_id'),
      ('ach_entry', 'created_at, ach_id'),
      ('transfer_request', 'created_at, request_id'),
      ('authorization_request', 'created_at, request_id'),
      ('approval_rule', 'created_at, rule_id'),
      ('transaction', 'booked_at, customer_id, entry_no, posting_no'),
      ('rail_file', 'created_at, name, file_id'),
      ('security_transfer', 'created_at, transfer_id DESC'),
      ('suspense_item', 'created_at, item_id'),
      ('wire_case', 'opened_at, case_id DESC')
    ) AS l(name, present)
  LOOP
    EXECUTE format('ALTER TABLE %I ADD COLUMN written_no bigint', listed.name);
    EXECUTE format(
      'UPDATE %1$I t SET written_no = o.nth
         FROM (SELECT ctid AS place, row_number() OVER (ORDER BY %2$s) AS nth FROM %1$I) o WHERE t.ctid = o.place',
      listed.name, listed.present);
    EXECUTE format(
      'ALTER TABLE %I ALTER written_no SET NOT NULL, ALTER written_no ADD GENERATED ALWAYS AS IDENTITY', listed.name);
    EXECUTE format(
      'SELECT setval(pg_get_serial_sequence(%1$L, ''written_no''), count(*) + 1, false) FROM %1$I', listed.name);
  END LOOP;
END $$;

CREATE INDEX customer_partner ON customer (partner_id, opened_at, written_no);
CREATE INDEX pocket_partner ON pocket (partner_id, opened_at, written_no);
CREATE INDEX portal_pocket ON portal (customer_id, pocket_id, created_at, written_no);
CREATE INDEX counterparty_list ON counterparty (customer_id, created_at, written_no);
CREATE INDEX wire_partner ON wire (partner_id, created_at, written_no);
CREATE INDEX wire_customer ON wire (customer_id, created_at, written_no);
CREATE INDEX ach_entry_list ON ach_entry (customer_id, created_at, written_no) WHERE way = 'ORIGINATION';
CREATE INDEX transfer_request_list ON transfer_request (customer_id, created_at, written_no);
CREATE INDEX authorization_request_list ON authorization_request (customer_id, created_at, written_no);
CREATE INDEX transaction_partner ON transaction (partner_id, booked_at, written_no);
CREATE INDEX rail_file_list ON rail_file (created_at, written_no);
CREATE INDEX security_transfer_list ON security_transfer (created_at, written_no);

-- As it was, but transactions come without the number that the table gives them.
CREATE TYPE new_transaction AS (
  customer_id uuid, pocket_id uuid, entry_no bigint, posting_no smallint, activity_id uuid, transaction_id uuid,
  partner_id uuid, type text, direction text, amount bigint, swept boolean, title text, description text,
  booked_at timestamptz, business_date date, settles_at timestamptz, details json, remittance json
);
DROP FUNCTION ledger_book;
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], entries journal_entry[],
  postings posting[], chain_entries chain_entry[], trades trade[], transactions new_transaction[], events new_event[], commands command[],
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
  INSERT INTO transaction (
    customer_id, pocket_id, entry_no, posting_no, activity_id, transaction_id, partner_id, type, direction, amount,
    swept, title, description, booked_at, business_date, settles_at, details, remittance
  ) SELECT * FROM unnest(transactions);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
END $$;
