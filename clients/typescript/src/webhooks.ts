// Deliveries of events: whether they are the bank's, and what they say.
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import type { Envelope } from './generated/customer/types.gen.ts'

export { WebhookVerificationError }

/**
 * Return the event of a delivery. Throws WebhookVerificationError unless it was signed with the secret, just now.
 * `body` is the text as it came; the same event may come again: look at `event_id`.
 */
export function verifyWebhook(body: string, headers: Record<string, string>, secret: string): Envelope {
  const webhook = new Webhook(secret, secret.startsWith('whsec_') ? undefined : { format: 'raw' })
  return webhook.verify(body, headers) as Envelope
}
