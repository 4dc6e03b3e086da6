-- Sanctions lists that were imported. One is in force, and its entries are kept; of the others is left when they were.
CREATE TABLE sanctions_list (
  list_id      uuid PRIMARY KEY,
  published_on date NOT NULL,
  digest       text NOT NULL CHECK (length(digest) = 64), -- of what it says
  entry_count  integer NOT NULL CHECK (entry_count > 0),
  name_count   integer NOT NULL CHECK (name_count >= entry_count),
  is_current   boolean NOT NULL,
  imported_at  timestamptz NOT NULL -- wall time
);
CREATE UNIQUE INDEX sanctions_list_current ON sanctions_list (is_current) WHERE is_current;

CREATE TABLE sanctions_entry (
  list_id  uuid NOT NULL REFERENCES sanctions_list,
  uid      bigint NOT NULL, -- the publisher's number
  content  bytea NOT NULL, -- JSON
  PRIMARY KEY (list_id, uid)
);
