DROP INDEX activity_of_rails;
DROP TABLE clearing;
DROP TABLE suspense_item;
