-- Outside a transaction
-- What froze something last is found in one read, whatever else its owner's audit log holds.
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_entry_freeze ON audit_entry (customer_id, resource_type, resource_id, entry_no)
  WHERE outcome = 'SUCCESS' AND (action IN ('customer.frozen', 'pocket.frozen', 'card.frozen')
                                 OR action = 'pocket.updated' AND details->>'status' = 'FROZEN');

-- Proposals are listed page by page, those that are open first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS freeze_proposal_list
  ON freeze_proposal (customer_id, (status IN ('PROPOSED', 'CONFIRMED')), proposed_at, proposal_id);

DROP INDEX CONCURRENTLY IF EXISTS freeze_proposal_newest;
