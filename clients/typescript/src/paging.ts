// Lists that come in pages, entry by entry.

interface Page<Item> {
  items: Item[]
  /** The cursor to the next page; lists without cursors have `count`. */
  next_page?: string | null
  count?: number
}
interface ListOptions {
  query?: { cursor?: string; offset?: number }
}

/** Yield every entry of a list: `for await (const wire of each(listWires, { client, query: { order: 'asc' } }))`. */
export async function* each<Item, Options extends object>(
  list: (options: Options) => Promise<{ data: Page<Item> }>,
  options: Options,
): AsyncGenerator<Item> {
  const { query } = options as ListOptions
  let from: { cursor?: string; offset?: number } = {}
  let seen = query?.offset ?? 0
  for (;;) {
    const { data } = await list({ ...options, query: { ...query, ...from } })
    yield* data.items
    seen += data.items.length
    if (data.next_page) from = { cursor: data.next_page }
    else if (data.items.length && seen < (data.count ?? 0)) from = { offset: seen }
    else return
  }
}
