DROP TABLE failed_work;
