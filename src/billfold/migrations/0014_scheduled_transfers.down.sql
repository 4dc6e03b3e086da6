DROP INDEX transfer_request_run;
ALTER TABLE transfer_request DROP CONSTRAINT transfer_request_series, DROP COLUMN series_state,
  DROP COLUMN handled_through, DROP COLUMN series_id, DROP COLUMN run_on;
