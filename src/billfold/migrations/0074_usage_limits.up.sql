-- Needs a stop: the release before counts invites in the table that goes.
-- How often something was done that costs the bank or a stranger; the subject is a customer, a partner, or a keyed hash of
-- an account or of an e-mail address. What was counted is forgotten at `expires_at`, by the wall clock.
CREATE TABLE usage_count (
  subject    uuid NOT NULL,
  kind       text NOT NULL,
  used       integer NOT NULL CHECK (used > 0),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (subject, kind)
);
GRANT UPDATE, DELETE ON usage_count TO billfold_app;
DROP TABLE invite_email_count;
