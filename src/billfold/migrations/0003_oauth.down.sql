DROP TABLE signing_key, dpop_jti, refresh_token, access_token, authorization_code, oauth_grant, authorization_request,
  client_key, oauth_client;
