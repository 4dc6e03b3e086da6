ALTER TABLE bank DROP COLUMN domain, DROP COLUMN key_check;
