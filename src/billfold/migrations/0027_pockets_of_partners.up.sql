-- The Pockets of each partner in the order of its list. On a cluster it is a table that lies with the partner
-- (`distribution.py`), so that a page comes from one shard instead of all.

CREATE VIEW partner_pocket AS SELECT partner_id, customer_id, pocket_id, opened_at, written_no, status FROM pocket;
