-- What a customer may do otherwise than its partner: one row per feature that was switched for it alone.
CREATE TABLE customer_feature (
  customer_id uuid NOT NULL REFERENCES customer,
  feature     text NOT NULL CHECK (length(feature) BETWEEN 1 AND 50),
  enabled     boolean NOT NULL,
  PRIMARY KEY (customer_id, feature)
);

-- The features a customer has: its own switches first, then its partner's.
CREATE FUNCTION customer_features(of_customer uuid) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT array(
    SELECT f.feature FROM customer c JOIN partner p USING (partner_id) CROSS JOIN unnest(p.features) AS f(feature)
     WHERE c.customer_id = of_customer
       AND NOT EXISTS (SELECT 1 FROM customer_feature o WHERE o.customer_id = of_customer AND o.feature = f.feature)
     UNION
    SELECT o.feature FROM customer_feature o WHERE o.customer_id = of_customer AND o.enabled
     ORDER BY 1)
$$;

-- Where a partner may call from; empty: from anywhere.
ALTER TABLE partner ADD COLUMN allowed_networks cidr[] NOT NULL DEFAULT '{}';
