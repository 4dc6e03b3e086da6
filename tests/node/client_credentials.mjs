// The client credentials grant with openid-client, signed with an Ed25519 or RSA key.
import * as client from 'openid-client'
import { done, given, key, proofKeys } from './browser.mjs'

const signing = await key(given.key, 'sign')
const proving = client.PrivateKeyJwt({ key: signing, kid: given.kid })
const config = await client.discovery(new URL(given.issuer), given.client_id, {}, proving)
const options = { DPoP: client.getDPoPHandle(config, await proofKeys()) }
const tokens = await client.clientCredentialsGrant(config, { scope: given.scope }, options)
done({ token_type: tokens.token_type, scope: tokens.scope, refresh: !!tokens.refresh_token })
