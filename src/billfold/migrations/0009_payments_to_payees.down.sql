DROP INDEX transfer_request_payee;
