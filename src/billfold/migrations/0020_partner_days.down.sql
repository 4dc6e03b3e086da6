DROP INDEX ach_entry_returned;
DROP TABLE partner_day;
