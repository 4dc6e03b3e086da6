-- When a token of the grant was last used; for the time before only when one was issued is known.
ALTER TABLE oauth_grant ADD COLUMN last_used_at timestamptz;
UPDATE oauth_grant g SET last_used_at = t.issued_at
  FROM (SELECT grant_id, max(issued_at) AS issued_at
          FROM (SELECT grant_id, issued_at FROM access_token UNION ALL SELECT grant_id, issued_at FROM refresh_token) i
         GROUP BY grant_id) t
 WHERE t.grant_id = g.grant_id;
