DROP TABLE object_note;
