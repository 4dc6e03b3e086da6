-- For a command that is alone in its batch: called by the same statement as `ledger_book`.

-- Holds the clock of a sandbox as bookings do (`HOLD_CLOCK`), and refuses if it was set since it was read.
CREATE FUNCTION clock_held_at(was_business timestamptz, was_wall timestamptz, was_frozen boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1668050787);
  PERFORM FROM clock WHERE business_anchor = was_business AND wall_anchor = was_wall AND frozen = was_frozen;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the clock was set in the meantime' USING ERRCODE = '40001';
  END IF;
END $$;

-- Keeps the response to a request in the commit of its command. Plans made while the table was small must not scan it.
CREATE FUNCTION response_keep(
  owner uuid, of_key uuid, of_fingerprint bytea, new_status smallint, new_type text, body bytea, wall timestamptz
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
  UPDATE idempotency_key
     SET claimed_at = wall, status = new_status, content_type = new_type, response_body = body
   WHERE caller = owner AND key = of_key AND fingerprint = of_fingerprint AND status IS NULL;
END $$;
