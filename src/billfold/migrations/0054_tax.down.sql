DROP TABLE tax_status;
