DO $$ BEGIN
  IF (SELECT relkind FROM pg_class WHERE oid = 'partner_pocket'::regclass) = 'v' THEN
    DROP VIEW partner_pocket;
  ELSE
    DROP TABLE partner_pocket;
  END IF;
END $$;
