-- Appointments are let go by their key, one look each, and where they lie, in which two who do it never
-- wait for each other; one that is moved meanwhile stays. The agenda fills and empties faster than its
-- statistics follow: left alone, the planner reads all of it for each appointment, having last seen
-- it empty.
CREATE FUNCTION agenda_let_go(of_kind text, objects uuid[], instants timestamptz[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  DELETE FROM agenda WHERE ctid = ANY(ARRAY(
    SELECT a.ctid FROM unnest(objects, instants) AS k(object_id, at)
     CROSS JOIN LATERAL (
           SELECT b.ctid FROM agenda b
            WHERE b.kind = of_kind AND b.object_id = k.object_id AND (k.at IS NULL OR b.at = k.at)
            LIMIT 1) a));
$$;
