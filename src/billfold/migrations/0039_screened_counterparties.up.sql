-- Counterparties are screened as well: when they are added, and whenever a list is imported.
ALTER TABLE sanctions_hit
  DROP CONSTRAINT sanctions_hit_subject_kind_check,
  ADD CONSTRAINT sanctions_hit_subject_kind_check
    CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY', 'CUSTOMER', 'COUNTERPARTY'));

-- Whom the list in force is still to be compared with, in turns: the nth of each customer, then the next.
CREATE TABLE sanctions_backlog (
  subject_id      uuid PRIMARY KEY,
  is_counterparty boolean NOT NULL, -- else a customer or an applicant, with related parties
  customer_id     uuid NOT NULL,
  turn            bigint NOT NULL
);
CREATE INDEX sanctions_backlog_turn ON sanctions_backlog (turn, subject_id);
-- The list in force is compared with everybody once more, as nobody has compared counterparties with it.
ALTER TABLE sanctions_list ADD COLUMN is_enumerated boolean NOT NULL DEFAULT false;
DELETE FROM scheduled_job WHERE kind = 'sanctions.screen';
UPDATE scheduled_job SET kind = 'sanctions.decided' WHERE kind = 'sanctions.confirmed';
