// Shows countries by their names, where they are listed by the letters of ISO 3166.
"use strict";

const names = new Intl.DisplayNames(["en"], { type: "region" });
for (const list of document.querySelectorAll("[data-countries]")) {
  const [none, ...countries] = list.options;
  const first = countries.shift();
  for (const each of [first, ...countries]) each.text = names.of(each.value);
  countries.sort((one, other) => one.text.localeCompare(other.text, "en"));
  list.append(...countries);
}
