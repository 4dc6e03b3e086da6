DROP INDEX ach_entry_partner;
ALTER TABLE card DROP COLUMN partner_id;
