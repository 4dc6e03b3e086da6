// The Customer API: its operations, and a client whose tokens are bound to a key by DPoP.
import { importPKCS8 } from 'jose'
import * as oauth from 'oauth4webapi'
import { ApiError, errorOf } from './errors.ts'
import { type Client, createClient, createConfig } from './generated/customer/client/index.ts'
import { retrying, type RetryOptions } from './retrying.ts'

export * from './generated/customer/index.ts'
export { ApiError }

export interface CustomerOptions extends RetryOptions {
  /** Where the API answers. */
  url: string
  /** A token and the key it is bound to: `clientCredentials`, or what a sign-in with any OpenID client gave. */
  tokens: () => Promise<Token>
  fetch?: typeof fetch
}

export interface Token {
  accessToken: string
  dpop: oauth.DPoPHandle
}

export interface ServiceUser {
  /** The authorization server, `https://auth.bank.example`. */
  issuer: string
  clientId: string
  /** ES256, PKCS #8 as PEM; and the id of its public key. */
  privateKey: string
  kid: string
  scope?: string
  fetch?: typeof fetch
}

const KEY = 'idempotency-key'
const REFRESH_BEFORE = 60_000

/** Return a client. What changes something is sent under the key of idempotency it carries, or a new one. */
export function connectCustomer(options: CustomerOptions): Client {
  const proved: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const body = new Uint8Array(await request.arrayBuffer())
    const { method, headers, signal } = request
    if (method !== 'GET' && !headers.has(KEY)) headers.set(KEY, crypto.randomUUID())
    return retrying(async () => {
      const { accessToken, dpop } = await options.tokens()
      const send = () =>
        oauth.protectedResourceRequest(accessToken, method, new URL(request.url), headers, body.length ? body : null, {
          DPoP: dpop,
          signal,
          ...sentWith(options),
        })
      return withNonce(send).catch((error: unknown) => {
        if (error instanceof oauth.WWWAuthenticateChallengeError) return error.response
        throw error
      })
    }, options)
  }
  const client = createClient(createConfig({ baseUrl: options.url, fetch: proved, throwOnError: true }))
  client.interceptors.error.use(errorOf)
  return client
}

/** Return the tokens of a service user: had when they are needed, and again before they end. */
export function clientCredentials(user: ServiceUser): () => Promise<Token> {
  const client: oauth.Client = { client_id: user.clientId }
  let expires = 0
  let token: Promise<Token> | null = null

  const request = async (): Promise<Token> => {
    const issuer = new URL(user.issuer)
    const found = await oauth.discoveryRequest(issuer, sentWith(user))
    const server = await oauth.processDiscoveryResponse(issuer, found)
    const proof = oauth.PrivateKeyJwt({ key: await importPKCS8(user.privateKey, 'ES256'), kid: user.kid })
    const dpop = oauth.DPoP(client, await oauth.generateKeyPair('ES256'))
    const asked = new URLSearchParams(user.scope ? { scope: user.scope } : {})
    const answer = await withNonce(async () => {
      const response = await oauth.clientCredentialsGrantRequest(server, client, proof, asked, {
        DPoP: dpop,
        ...sentWith(user),
      })
      return oauth.processClientCredentialsResponse(server, client, response)
    })
    expires = Date.now() + (answer.expires_in ?? 0) * 1000
    return { accessToken: answer.access_token, dpop }
  }
  return () => {
    if (token === null || Date.now() > expires - REFRESH_BEFORE) {
      expires = Infinity
      token = request().catch((error: unknown) => {
        token = null
        throw error
      })
    }
    return token
  }
}

/** Send once more when the server asks for a proof with its nonce, which the handle has learnt by then. */
async function withNonce<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error
    return send()
  }
}

function sentWith(options: { fetch?: typeof fetch }): object {
  return options.fetch ? { [oauth.customFetch]: options.fetch } : {}
}
