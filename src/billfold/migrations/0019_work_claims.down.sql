DROP TABLE work_claim;
