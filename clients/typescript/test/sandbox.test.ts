// The client against a running sandbox: SANDBOX is its credentials file, DELIVERY a signed event.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as customer from '../src/customer.ts'
import { each } from '../src/paging.ts'
import * as partner from '../src/partner.ts'
import { verifyWebhook, WebhookVerificationError } from '../src/webhooks.ts'

const box = JSON.parse(readFileSync(process.env.SANDBOX ?? '.billfold/sandbox.json', 'utf8'))
const path = { customer_id: box.customer_id }
const body = { pocket_name: 'Node', deposit_strategy_id: 'UST-4W' }
const credentials = {
  url: box.partner_url,
  username: box.username,
  sharedSecret: box.shared_secret,
  privateKey: box.private_key,
  kid: box.kid,
}
const client = partner.connectPartner(credentials)

test('the same key opens one Pocket, another key another', async () => {
  const headers = { 'x-service-idempotency': crypto.randomUUID() }
  const opened = [
    await partner.createPocket({ client, path, body, headers }),
    await partner.createPocket({ client, path, body, headers }),
    await partner.createPocket({ client, path, body }),
  ].map(({ data }) => data.id)
  assert.equal(new Set(opened).size, 2)
  assert.equal(opened[0], opened[1])
})

test('a request is sent again under its key until it is answered', async () => {
  const keys: (string | null)[] = []
  const unreliable: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (String(input).endsWith('/token/')) return answer
    keys.push(new Headers(init?.headers).get('x-service-idempotency'))
    if (keys.length === 1) throw new TypeError('fetch failed')
    return keys.length === 2 ? new Response('', { status: 503, headers: { 'retry-after': '0' } }) : answer
  }
  const shaky = partner.connectPartner({ ...credentials, fetch: unreliable })
  const { data } = await partner.createPocket({ client: shaky, path, body })
  assert.equal(data.pocket_name, 'Node')
  assert.deepEqual(keys, [keys[0], keys[0], keys[0]])
})

test('a request whose answer is lost or cut off is carried out once', async () => {
  const count = async () => (await partner.listCustomerPockets({ client, path })).data.items.length
  const before = await count()
  for (const fault of ['answer-lost', 'connection-dropped'] as const) {
    await partner.sandboxFault({ client, body: { fault, target: 'create_pocket' } })
    assert.equal((await partner.createPocket({ client, path, body })).data.pocket_name, 'Node')
  }
  assert.equal(await count(), before + 2)
  const { data } = await partner.sandboxFaults({ client })
  assert.deepEqual(data.items[0]!.requests.map((each) => each.status_code), [500, 201, null, 201])
  await partner.sandboxClearFaults({ client })
})

test('a refusal is an error with its code, and is not sent again', async () => {
  const unknown = { client, path: { pocket_id: crypto.randomUUID() } }
  await assert.rejects(partner.getPocket(unknown), (error: unknown) => {
    assert(error instanceof partner.ApiError)
    assert.deepEqual([error.status, error.code], [404, 'not-found'])
    return true
  })
})

test('lists are read to their ends, with cursors and without', async () => {
  const { data } = await partner.listPockets({ client, query: { limit: 100 } })
  const pockets: string[] = []
  for await (const pocket of each(partner.listPockets, { client, query: { limit: 2 } })) pockets.push(pocket.id)
  assert.deepEqual(pockets, data.items.map((pocket) => pocket.id))
  const portals = await partner.listPortals({ client, path: { pocket_id: pockets[0]! } })
  const wire = { portal_id: portals.data.items[0]!.id, amount_usdc: 100_00, sender_name: 'Contoso' }
  for (let nth = 0; nth < 3; nth++) await partner.sandboxWire({ client, body: wire })
  const amounts: number[] = []
  const query = { limit: 1, pocket_id: pockets[0]! }
  for await (const found of each(partner.listWires, { client, query })) amounts.push(found.amount.value)
  assert.deepEqual(amounts, [100_00, 100_00, 100_00])
})

test('a company reads its Pockets with tokens that are bound to a key', async () => {
  const service = box.clients.find((found: any) => found.client_id === 'sandbox-service')
  const tokens = customer.clientCredentials({
    issuer: box.auth_url,
    clientId: service.client_id,
    privateKey: service.private_key,
    kid: service.kid,
  })
  const own = customer.connectCustomer({ url: box.customer_url, tokens })
  const { data } = await customer.createPocket({ client: own, body })
  const pockets: string[] = []
  for await (const pocket of each(customer.listPockets, { client: own, query: { limit: 2 } })) pockets.push(pocket.id)
  assert(pockets.includes(data.id))
  assert.equal(pockets.length, (await customer.listPockets({ client: own })).data.count)
})

test('a delivery is believed if it is signed', () => {
  const { text, headers, secret } = JSON.parse(process.env.DELIVERY ?? '{}')
  assert.equal(verifyWebhook(text, headers, secret).event_type, 'transfers.wire.in.success')
  assert.throws(() => verifyWebhook(`${text} `, headers, secret), WebhookVerificationError)
})
