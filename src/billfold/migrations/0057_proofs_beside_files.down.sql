ALTER TABLE report_file DROP COLUMN proof;
