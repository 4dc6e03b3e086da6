DROP TABLE statement_run;
DROP TABLE statement;
