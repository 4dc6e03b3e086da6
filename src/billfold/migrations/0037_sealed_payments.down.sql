DROP INDEX rail_file_unsealed, rail_file_arrived_once;
CREATE UNIQUE INDEX rail_file_arrived_once ON rail_file (rail, sha256) WHERE direction = 'IN' AND state <> 'REFUSED';
ALTER TABLE rail_file DROP COLUMN digest;
