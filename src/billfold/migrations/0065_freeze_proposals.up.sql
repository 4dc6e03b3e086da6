-- A freeze, or its end, that one operator proposes and another confirms. Each write leaves the row's fingerprint in the
-- bank's audit log.
CREATE TABLE freeze_proposal (
  proposal_id  uuid PRIMARY KEY,
  customer_id  uuid NOT NULL REFERENCES customer, -- the bank itself
  owner_id     uuid NOT NULL REFERENCES customer, -- whose it is
  subject      text NOT NULL CHECK (subject IN ('CUSTOMER', 'POCKET', 'CARD')),
  subject_id   uuid NOT NULL,
  freezes      boolean NOT NULL, -- false: it ends the freeze
  reason       text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  status       text NOT NULL CHECK (status IN ('PROPOSED', 'CONFIRMED', 'APPLIED', 'REFUSED', 'WITHDRAWN')),
  proposed_by  text NOT NULL,
  proposed_at  timestamptz NOT NULL, -- business time
  decided_by   text,
  decided_at   timestamptz, -- business time
  CHECK ((status = 'PROPOSED') = (decided_by IS NULL)),
  CHECK ((decided_by IS NULL) = (decided_at IS NULL)),
  CHECK (status NOT IN ('CONFIRMED', 'APPLIED', 'REFUSED') OR decided_by <> proposed_by)
);
CREATE UNIQUE INDEX freeze_proposal_open ON freeze_proposal (subject_id) WHERE status IN ('PROPOSED', 'CONFIRMED');
CREATE INDEX freeze_proposal_newest ON freeze_proposal (proposed_at);
REVOKE DELETE ON freeze_proposal FROM billfold_app;
