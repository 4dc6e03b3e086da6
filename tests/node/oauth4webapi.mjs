// The authorization code grant with oauth4webapi, one request and one check at a time.
import * as oauth from 'oauth4webapi'
import { approve, done, given, key, proofKeys } from './browser.mjs'

const issuer = new URL(given.issuer)
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer))
const client = { client_id: given.client_id, id_token_signed_response_alg: given.id_token_alg }
const proving = oauth.PrivateKeyJwt({ key: await key(given.key, 'sign'), kid: given.kid })
const DPoP = oauth.DPoP(client, await proofKeys())
let asks = 0

/** Ask again when the server wants its nonce in the proof. */
async function asked(request, read) {
  asks += 1
  try {
    return await read(await request())
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error
    asks += 1
    return await read(await request())
  }
}

const verifier = oauth.generateRandomCodeVerifier()
const state = oauth.generateRandomState()
const nonce = oauth.generateRandomNonce()
const wanted = new URLSearchParams({
  client_id: client.client_id,
  response_type: 'code',
  redirect_uri: given.redirect_uri,
  scope: given.scope,
  state,
  nonce,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
})
const pushed = await asked(
  () => oauth.pushedAuthorizationRequest(as, client, proving, wanted, { DPoP }),
  (answer) => oauth.processPushedAuthorizationResponse(as, client, answer),
)
const url = new URL(as.authorization_endpoint)
url.searchParams.set('client_id', client.client_id)
url.searchParams.set('request_uri', pushed.request_uri)
const back = oauth.validateAuthResponse(as, client, await approve(url), state)

let answered
const tokens = await asked(
  () =>
    oauth.authorizationCodeGrantRequest(as, client, proving, back, given.redirect_uri, verifier, {
      DPoP,
    }),
  (answer) => {
    answered = answer
    return oauth.processAuthorizationCodeResponse(as, client, answer, {
      expectedNonce: nonce,
      requireIdToken: true,
    })
  },
)
await oauth.validateApplicationLevelSignature(as, answered)
const claims = oauth.getValidatedIdTokenClaims(tokens)
const person = await asked(
  () => oauth.userInfoRequest(as, client, tokens.access_token, { DPoP }),
  (answer) => oauth.processUserInfoResponse(as, client, claims.sub, answer),
)
const fresh = await asked(
  () => oauth.refreshTokenGrantRequest(as, client, proving, tokens.refresh_token, { DPoP }),
  (answer) => oauth.processRefreshTokenResponse(as, client, answer),
)
const introspect = async () =>
  oauth.processIntrospectionResponse(
    as,
    client,
    await oauth.introspectionRequest(as, client, proving, fresh.access_token),
  )
const told = await introspect()
await oauth.processRevocationResponse(
  await oauth.revocationRequest(as, client, proving, fresh.access_token),
)
const after = await introspect()
done({
  asks,
  token_type: tokens.token_type,
  expires_in: tokens.expires_in,
  name: person.name,
  sub: claims.sub,
  told: { active: told.active, scope: told.scope, token_type: told.token_type, bound: !!told.cnf },
  after: after.active,
})
