DROP INDEX ach_entry_id;
