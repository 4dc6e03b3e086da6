DROP INDEX request_log_of_trace;
DELETE FROM request_log WHERE EXISTS (
  SELECT FROM request_log other WHERE other.trace_id = request_log.trace_id AND other.id > request_log.id
);
ALTER TABLE request_log DROP COLUMN id, ADD PRIMARY KEY (trace_id);
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, requested_at, trace_id);
CREATE INDEX request_log_of_operation ON request_log (tenant_id, operation, requested_at, trace_id);
CREATE INDEX request_log_errors ON request_log (tenant_id, requested_at, trace_id, operation, error_code)
  WHERE status >= 400;
