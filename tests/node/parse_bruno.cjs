// Reads the files of a Bruno collection, given as JSON on standard input, with Bruno's own parser; prints the requests.
const { bruToJsonV2, collectionBruToJson } = require("@usebruno/lang");
const files = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const read = (name, text) => (name.endsWith("/collection.bru") ? collectionBruToJson(text) : bruToJsonV2(text));
const found = Object.entries(files).filter(([name]) => name.endsWith(".bru"));
console.log(JSON.stringify(Object.fromEntries(found.map(([name, text]) => [name, read(name, text)]))));
