DROP TABLE usage_count;
CREATE TABLE invite_email_count (
  subject   uuid NOT NULL,
  starts_at timestamptz NOT NULL,
  sent      integer NOT NULL CHECK (sent > 0),
  PRIMARY KEY (subject, starts_at)
);
GRANT UPDATE, DELETE ON invite_email_count TO billfold_app;
