-- What lies beside a file that has no place for the bank's signature, such as a table.
ALTER TABLE report_file ADD COLUMN proof text;
