DROP TABLE data_key;
