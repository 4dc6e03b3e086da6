-- A file of a rail is encrypted with the bank's own data key. `sha256` is the hash of the content as it is stored,
-- `digest` a keyed one of the plain content, by which a file that comes again is recognized; it is null where an
-- earlier release stored the content in plain text. `billfold migrate up` encrypts what is not.
ALTER TABLE rail_file ADD COLUMN digest bytea CHECK (length(digest) = 32);
DROP INDEX rail_file_arrived_once;
CREATE UNIQUE INDEX rail_file_arrived_once ON rail_file (rail, coalesce(digest, sha256))
  WHERE direction = 'IN' AND state <> 'REFUSED';
CREATE INDEX rail_file_unsealed ON rail_file (file_id) WHERE digest IS NULL;
