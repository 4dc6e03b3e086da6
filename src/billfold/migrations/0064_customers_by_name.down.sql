DROP INDEX customer_by_name;
