// Runs TypeScript programs as modules, one after the other; of others it only makes sure that they are programs.
import { stripTypeScriptTypes } from 'node:module'
import { text } from 'node:stream/consumers'
import { SourceTextModule } from 'node:vm'

const given = JSON.parse(await text(process.stdin))
for (const code of given.parsed) new SourceTextModule(stripTypeScriptTypes(code))
const printed = {}
for (const [name, code] of Object.entries(given.run)) {
  console.log = (value) => { printed[name] = value }
  await import(`data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(code))}`)
}
process.stdout.write(JSON.stringify(printed))
