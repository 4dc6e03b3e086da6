-- What the bank owed at the close of a day: a signed root, chained to the one before it. `secret` is sealed; the salts of
-- all leaves derive from it.
CREATE TABLE daily_root (
  number   int PRIMARY KEY CHECK (number > 0),
  day      date NOT NULL UNIQUE,
  jws      text NOT NULL,
  secret   bytea NOT NULL,
  made_at  timestamptz NOT NULL
);

-- The trees below it, in pages of eight levels: a byte for the power of two of a tile's units, 32 for its hash. The lowest
-- pages of the tree of customers have the text of their leaves, one in a line.
CREATE TABLE daily_root_page (
  number             int NOT NULL REFERENCES daily_root,
  tree               text NOT NULL,
  height             int NOT NULL CHECK (height > 0 AND height % 8 = 0),
  page_no            bigint NOT NULL CHECK (page_no >= 0),
  tiles              bytea NOT NULL CHECK (length(tiles) > 0 AND length(tiles) % 33 = 0),
  leaves             bytea,
  first_customer_id  uuid,
  PRIMARY KEY (number, tree, height, page_no),
  CHECK ((leaves IS NULL) = (first_customer_id IS NULL))
);
CREATE INDEX daily_root_page_customer ON daily_root_page (number, first_customer_id) WHERE first_customer_id IS NOT NULL;
CREATE TRIGGER daily_root_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER daily_root_page_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root_page
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON daily_root, daily_root_page FROM billfold_app;

-- Days of which nothing was published, since more was owed than there was.
CREATE TABLE daily_root_refusal (
  day         date PRIMARY KEY,
  reason      text NOT NULL,
  refused_at  timestamptz NOT NULL
);
