// The authorization code grant with openid-client: discovery, PAR, PKCE, DPoP nonces, refresh, revocation.
import * as client from 'openid-client'
import { approve, done, given, key, proofKeys } from './browser.mjs'

const proving = client.PrivateKeyJwt({ key: await key(given.key, 'sign'), kid: given.kid })
const metadata = { id_token_signed_response_alg: given.id_token_alg }
const config = await client.discovery(new URL(given.issuer), given.client_id, metadata, proving)
client.enableNonRepudiationChecks(config)

const pair = await proofKeys()
const options = given.dpop ? { DPoP: client.getDPoPHandle(config, pair) } : {}
const pkceCodeVerifier = client.randomPKCECodeVerifier()
const state = client.randomState()
const nonce = client.randomNonce()
const asked = {
  redirect_uri: given.redirect_uri,
  scope: given.scope,
  state,
  nonce,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: 'S256',
}
const url = given.par
  ? await client.buildAuthorizationUrlWithPAR(config, asked, options)
  : client.buildAuthorizationUrl(config, asked)
const back = await approve(url)

const checks = { pkceCodeVerifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
const tokens = await client.authorizationCodeGrant(config, back, checks, undefined, options)
const claims = tokens.claims()
const person = await client.fetchUserInfo(config, tokens.access_token, claims.sub, options)
const fresh = await client.refreshTokenGrant(config, tokens.refresh_token, {}, options)
const told = await client.tokenIntrospection(config, fresh.access_token)
await client.tokenRevocation(config, fresh.refresh_token)
const after = await client.tokenIntrospection(config, fresh.access_token)

let reused = 'nothing was said'
try {
  await client.authorizationCodeGrant(config, back, checks, undefined, options)
} catch (error) {
  reused = error.error
}
done({
  token_type: tokens.token_type,
  expires_in: tokens.expires_in,
  name: person.name,
  sub: claims.sub,
  told: { active: told.active, scope: told.scope, token_type: told.token_type, bound: !!told.cnf },
  after: after.active,
  reused,
})
