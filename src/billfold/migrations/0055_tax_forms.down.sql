DROP TABLE tax_run;
