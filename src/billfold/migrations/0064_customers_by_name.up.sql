-- Customers of a partner are found by how their names begin.
CREATE INDEX customer_by_name ON customer (partner_id, lower(name) text_pattern_ops);
