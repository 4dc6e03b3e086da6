-- Several requests may belong to one trace: its id is the caller's. Each row has an id of its own.
ALTER TABLE request_log ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();
ALTER TABLE request_log ALTER COLUMN id DROP DEFAULT, DROP CONSTRAINT request_log_pkey, ADD PRIMARY KEY (id);
DROP INDEX request_log_of_tenant, request_log_of_operation, request_log_errors;
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, requested_at, id);
CREATE INDEX request_log_of_operation ON request_log (tenant_id, operation, requested_at, id);
CREATE INDEX request_log_errors ON request_log (tenant_id, requested_at, id, operation, error_code)
  WHERE status >= 400;
CREATE INDEX request_log_of_trace ON request_log (trace_id);
