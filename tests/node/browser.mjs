// The user agent: the Python test answers for it, line by line.
import { createInterface } from 'node:readline'

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** What the script was started with. */
export const given = JSON.parse((await lines.next()).value)

/** Follow an authorization URL to the page that asks; return where the answer leads. */
export async function approve(url) {
  const shown = await fetch(url, { redirect: 'manual' })
  if (shown.status !== 303) throw new Error(`${shown.status} ${await shown.text()}`)
  const page = new URL(shown.headers.get('location'))
  console.log(JSON.stringify({ request: page.searchParams.get('request') }))
  return new URL((await lines.next()).value)
}

/** Import a JWK; `sign` for private ones. */
export function key(jwk, use) {
  const kinds = {
    EC: { name: 'ECDSA', namedCurve: 'P-256' },
    OKP: { name: 'Ed25519' },
    RSA: { name: 'RSA-PSS', hash: 'SHA-256' },
  }
  return crypto.subtle.importKey('jwk', jwk, kinds[jwk.kty], true, [use])
}

/** Make the pair of keys that proofs are signed with. */
export function proofKeys() {
  return crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
}

/** Tell what came of it all. */
export function done(result) {
  console.log(JSON.stringify({ done: result }))
  process.exit(0)
}
