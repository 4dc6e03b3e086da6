DROP FUNCTION ledger_retire;
DROP FUNCTION ledger_apply;
DROP TABLE settlement, transfer, counterparty, portal, lien, snapshot, pocket, link, command, event, activity, trade, leg, journal,
  account, directory, customer, head, closing_price, bill_rate, auction, security, bank, calendar_override, clock, deprecated_call,
  rate_window, request_key, used_assertion, partner_token, partner_key, partner_user, partner_secret, partner;
