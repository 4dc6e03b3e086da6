// What an operation throws when the bank refuses.

/** A refusal. `code` names the problem (`/docs/errors` describes each), or is "invalid" when fields had mistakes. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly problem: unknown
  readonly traceId: string | null

  constructor(response: Response, problem: any) {
    const code = problem?.code ?? problem?.error ?? 'invalid'
    super(`${response.status} ${code}: ${problem?.title ?? problem?.error_description ?? JSON.stringify(problem)}`)
    this.name = 'ApiError'
    this.status = response.status
    this.code = code
    this.problem = problem
    this.traceId = response.headers.get('x-service-trace-id')
  }
}

/** Return what a client throws: a refusal as ApiError, anything else as it is. */
export function errorOf(error: unknown, response: Response | undefined): unknown {
  return response && !response.ok ? new ApiError(response, error) : error
}
