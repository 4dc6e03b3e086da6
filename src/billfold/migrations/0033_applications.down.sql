DELETE FROM document WHERE application_id IS NOT NULL;
ALTER TABLE document DROP COLUMN related_party_id, DROP COLUMN application_id, DROP COLUMN subject_id;
DELETE FROM scheduled_job WHERE kind LIKE 'application.%';
DROP TABLE agreement_acceptance;
DROP TABLE application_move;
DROP TABLE related_party_application;
DROP TABLE application;
