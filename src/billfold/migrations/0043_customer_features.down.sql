ALTER TABLE partner DROP COLUMN allowed_networks;
DROP FUNCTION customer_features;
DROP TABLE customer_feature;
