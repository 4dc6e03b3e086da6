DROP INDEX activity_of_rails;
DROP TABLE security_transfer;
DROP TABLE clearing;
DROP TABLE suspense_item;
