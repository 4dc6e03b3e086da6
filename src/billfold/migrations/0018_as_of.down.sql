DROP TABLE former_row;
DROP FUNCTION pocket_versions_add;
DROP TABLE pocket_version;
