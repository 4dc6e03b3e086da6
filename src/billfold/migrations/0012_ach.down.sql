DROP TABLE ach_counter;
DROP TABLE ach_file;
DROP TABLE ach_answer;
DROP TABLE ach_entry;
