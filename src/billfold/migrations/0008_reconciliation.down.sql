-- The breaks and the files of statements are lost.
DROP TABLE reconciliation_break, reconciled_day;
DELETE FROM rail_file WHERE rail = 'STATEMENT';
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CUSTODY'));
