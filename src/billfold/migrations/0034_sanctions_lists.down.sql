DROP TABLE sanctions_entry;
DROP TABLE sanctions_list;
