-- Policies: rules in CEL with their tests, one document of a customer in versions that are never changed. A transfer
-- request names the version in force and the rule of it that decided. The release before knows no policy and pays as
-- its approval rules say: start all processes of this release before a first policy is proposed.
CREATE TABLE policy (
  customer_id   uuid NOT NULL REFERENCES customer,
  version       int NOT NULL CHECK (version > 0),
  document      text NOT NULL,
  content_hash  bytea NOT NULL,
  request_id    uuid NOT NULL, -- the authorization request that approved it
  member_id     uuid NOT NULL,
  created_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, version),
  CHECK (content_hash = sha256(convert_to(document, 'UTF8')))
);
ALTER TABLE transfer_request ADD COLUMN policy_version int, ADD COLUMN policy_rule text;
