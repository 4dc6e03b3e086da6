// Passkeys: the one thing a browser does only when a script asks. Without it the pages work as well.
"use strict";

const canDo = window.PublicKeyCredential && PublicKeyCredential.parseCreationOptionsFromJSON;
const paths = {
  "sign-in": ["/passkeys/sign-in/options", "/passkeys/sign-in"],
  "add": ["/passkeys/options", "/passkeys"],
};

async function send(path, csrf, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf": csrf },
    body: JSON.stringify(body),
  });
  if (answer.headers.get("content-type") !== "application/json") throw new Error("Reload this page and try again.");
  return answer.json();
}

async function ask(kind, options) {
  if (kind === "add") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
}

async function use(place) {
  const [optionsPath, answerPath] = paths[place.dataset.passkey];
  const { csrf, next } = place.dataset;
  const options = await send(optionsPath, csrf, {});
  if (options.go) return location.assign(options.go);
  const credential = (await ask(place.dataset.passkey, options)).toJSON();
  const answer = await send(answerPath, csrf, { credential, next });
  if (answer.wrong) throw new Error(answer.wrong);
  location.assign(answer.go);
}

function tell(place, error) {
  const problem = place.querySelector(".problem");
  const givenUp = error.name === "NotAllowedError" || error.name === "AbortError";
  const known = error.name === "InvalidStateError";
  problem.textContent = givenUp ? "No passkey was given. Try again, or use another way."
    : known ? "This device has a passkey for your account already."
    : error instanceof TypeError ? "The server was not reached. Try again in a moment." : error.message;
  problem.hidden = false;
}

for (const place of canDo ? document.querySelectorAll("[data-passkey]") : []) {
  const button = place.querySelector("button");
  place.hidden = false;
  for (const each of document.querySelectorAll(`[data-shown-with="${place.dataset.passkey}"]`)) each.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    place.querySelector(".problem").hidden = true;
    try {
      await use(place);
    } catch (error) {
      tell(place, error);
    } finally {
      button.disabled = false;
    }
  });
}
