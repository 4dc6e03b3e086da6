// The Partner API: its operations, and a client that signs each request.
import { importPKCS8, SignJWT } from 'jose'
import { ApiError, errorOf } from './errors.ts'
import { type Client, createClient, createConfig } from './generated/partner/client/index.ts'
import { retrying, type RetryOptions } from './retrying.ts'

export * from './generated/partner/index.ts'
export { ApiError }

export interface PartnerOptions extends RetryOptions {
  /** Where the API answers, `https://api.bank.example`. */
  url: string
  username: string
  sharedSecret: string
  /** The private key that tokens are had with: ES256, PKCS #8 as PEM; and the id of its public key. */
  privateKey: string
  kid: string
  fetch?: typeof fetch
}

const KEY = 'x-service-idempotency'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const REFRESH_BEFORE = 60_000

/** Return a client. A request is sent under the key of idempotency it carries, or a new one. */
export function connectPartner(options: PartnerOptions): Client {
  const send = options.fetch ?? fetch
  const tokens = new Tokens(options, send)

  const signed: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const body = new Uint8Array(await request.arrayBuffer())
    const { method, headers, signal } = request
    if (!headers.has(KEY)) headers.set(KEY, crypto.randomUUID())
    const path = new URL(request.url).pathname
    headers.set('x-service-signature', await signatureOf(options.sharedSecret, headers.get(KEY) + path, body))
    const attempt = async () => {
      headers.set('authorization', `Bearer ${await tokens.current()}`)
      return send(request.url, { method, headers, signal, body: body.length ? body : undefined })
    }
    return retrying(async () => {
      const response = await attempt()
      const isUnknown = response.status === 401 && response.headers.has('www-authenticate')
      return isUnknown && tokens.forget() ? attempt() : response
    }, options)
  }
  const client = createClient(createConfig({ baseUrl: options.url, fetch: signed, throwOnError: true }))
  client.interceptors.error.use(errorOf)
  return client
}

/** Return the base64 of the HMAC-SHA256 over key and path, and the bytes of the body. */
async function signatureOf(secret: string, keyAndPath: string, body: Uint8Array): Promise<string> {
  const bytes = new TextEncoder()
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes.encode(secret), hmac, false, ['sign'])
  const content = new Uint8Array([...bytes.encode(keyAndPath), ...body])
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.sign('HMAC', key, content))))
}

/** The token of a partner, had again before it ends. */
class Tokens {
  #options: PartnerOptions
  #send: typeof fetch
  #token: Promise<string> | null = null
  #expires = 0

  constructor(options: PartnerOptions, send: typeof fetch) {
    this.#options = options
    this.#send = send
  }

  current(): Promise<string> {
    if (this.#token === null || Date.now() > this.#expires - REFRESH_BEFORE) {
      this.#expires = Infinity
      this.#token = this.#request().catch((error: unknown) => {
        this.#token = null
        throw error
      })
    }
    return this.#token
  }

  /** Have another token next time; return whether there was one. */
  forget(): boolean {
    const had = this.#token !== null
    this.#token = null
    return had
  }

  async #request(): Promise<string> {
    const { url, username, privateKey, kid } = this.#options
    const address = new URL('/token/', url).href
    const assertion = await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'ES256', kid })
      .setIssuer(username)
      .setSubject(username)
      .setAudience(address)
      .setIssuedAt()
      .setExpirationTime('2m')
      .sign(await importPKCS8(privateKey, 'ES256'))
    const body = new URLSearchParams({ grant_type: GRANT, assertion })
    const response = await this.#send(address, { method: 'POST', body })
    const answer: any = await response.json()
    if (!response.ok) throw new ApiError(response, answer)
    this.#expires = Date.now() + answer.expires_in * 1000
    return answer.access_token
  }
}
