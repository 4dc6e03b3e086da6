ALTER TABLE document DROP COLUMN file_sealed;
