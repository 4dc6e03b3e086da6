-- Deletes all policies: the release before does not know them.
ALTER TABLE transfer_request DROP COLUMN policy_version, DROP COLUMN policy_rule;
DROP TABLE policy;
