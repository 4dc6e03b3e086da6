// Reads [secret, headers, body] as JSON lines and says for each whether the delivery is genuine.
const readline = require("node:readline");
const { Webhook } = require("standardwebhooks");

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [secret, headers, body, raw] = JSON.parse(line);
  try {
    new Webhook(secret, raw ? { format: "raw" } : undefined).verify(body, headers);
    console.log("genuine");
  } catch (error) {
    console.log(error.message);
  }
});
