// Sends a request again while it may succeed. Keys of idempotency make that safe: nothing runs twice.

export interface RetryOptions {
  /** How often a request is sent at most; 4 unless given. */
  attempts?: number
  /** The longest wait between two attempts in milliseconds, 60,000 unless given; a longer Retry-After is not waited for. */
  longestWait?: number
}

const FIRST_WAIT = 500
const UNAVAILABLE = [429, 502, 503, 504]

/** Return the response of the last attempt. `send` makes a new request of the same content each time. */
export async function retrying(send: () => Promise<Response>, options: RetryOptions = {}): Promise<Response> {
  const { attempts = 4, longestWait = 60_000 } = options
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt >= attempts
    const response = await send().then(whole).catch((error: unknown) => {
      if (isLast || !(error instanceof TypeError)) throw error // fetch failed: not aborted, nor refused by our own code
    })
    const wait = waitBefore(attempt, response)
    if (response && (isLast || wait > longestWait || !(await isRetryable(response)))) return response
    await response?.body?.cancel()
    await new Promise((resolve) => setTimeout(resolve, Math.min(wait, longestWait)))
  }
}

/** Return a response with its JSON, which may be cut off while it is read; files and streams are read by the caller. */
async function whole(response: Response): Promise<Response> {
  if (!response.headers.get('content-type')?.includes('json')) return response
  return new Response(await response.arrayBuffer(), response)
}

/** Return what Retry-After says in milliseconds, or a random part of a wait that doubles with each attempt. */
function waitBefore(attempt: number, response: Response | void): number {
  const said = response?.headers.get('retry-after')
  if (!said) return FIRST_WAIT * 2 ** (attempt - 1) * (0.5 + Math.random() / 2)
  return /^\d+$/.test(said) ? Number(said) * 1000 : Math.max(0, Date.parse(said) - Date.now())
}

/** Whether the same request may succeed later: the bank says so in `retryable`, a proxy by its status. */
async function isRetryable(response: Response): Promise<boolean> {
  if (response.status < 400) return false
  const problem = await response.clone().json().catch(() => null)
  return problem?.retryable ?? UNAVAILABLE.includes(response.status)
}
