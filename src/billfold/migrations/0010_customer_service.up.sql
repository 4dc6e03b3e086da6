-- For operators who look for a customer or a payment: by a word of a name, a card's last digits, the numbers of Fedwire, an
-- amount. Outside a transaction, so that nothing waits for an index.
-- Outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS customer_words ON customer USING gin (to_tsvector('simple', name));
CREATE INDEX CONCURRENTLY IF NOT EXISTS user_account_words ON user_account
  USING gin (to_tsvector('simple', first_name || ' ' || last_name));
CREATE INDEX CONCURRENTLY IF NOT EXISTS membership_list ON membership (created_at, member_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_last_four ON card (last_four, created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS wire_imad ON wire (imad) WHERE imad IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS wire_omad ON wire (omad) WHERE omad IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS wire_amount ON wire (amount, created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_amount ON ach_entry (amount, created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS freeze_proposal_owner ON freeze_proposal (owner_id, proposed_at, proposal_id);

-- Who looks after a check that fails. The row leaves when it is put down.
CREATE TABLE IF NOT EXISTS alert (
  name      text PRIMARY KEY,
  owner     text NOT NULL,
  taken_at  timestamptz NOT NULL -- wall time
);
GRANT UPDATE, DELETE ON alert TO billfold_app;
