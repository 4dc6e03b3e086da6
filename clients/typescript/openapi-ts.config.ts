// Generates the operations and shapes of both APIs from the documents in `openapi`, which `billfold openapi` prints.
import { readFileSync } from 'node:fs'
import { defineConfig } from '@hey-api/openapi-ts'

const PROOFS = ['x-service-signature', 'authorization', 'dpop']
const KEYS = ['x-service-idempotency', 'idempotency-key']

/** Read a document; headers that the client makes itself are no parameters, keys are optional ones. */
function documentOf(api: string) {
  const document = JSON.parse(readFileSync(`openapi/${api}.json`, 'utf8'))
  const resolved = (each: any) => (each.$ref ? document.components.parameters[each.$ref.split('/').at(-1)] : each)
  for (const operation of Object.values<any>(document.paths).flatMap((item) => Object.values<any>(item))) {
    operation.parameters = (operation.parameters ?? [])
      .map(resolved)
      .filter((each: any) => !PROOFS.includes(each.name.toLowerCase()))
      .map((each: any) => (KEYS.includes(each.name.toLowerCase()) ? { ...each, required: false } : each))
  }
  return document
}

export default defineConfig(
  ['partner', 'customer'].map((api) => ({
    input: documentOf(api),
    output: { path: `src/generated/${api}`, module: { extension: '.ts' } },
    plugins: [{ name: '@hey-api/client-fetch', throwOnError: true }, '@hey-api/typescript', '@hey-api/sdk'],
    logs: { level: 'warn' },
  })),
)
