// A decision is signed with a passkey: the browser signs the hash of what the page shows, and the form is sent with it.
"use strict";

const able = window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON;
for (const form of able ? document.querySelectorAll("[data-signs]") : []) {
  const place = form.querySelector("[data-signing]");
  const problem = form.querySelector("[data-signing-problem]");
  if (!place) continue;
  place.hidden = false;
  for (const button of place.querySelectorAll("[data-decides]")) {
    button.addEventListener("click", async () => {
      problem.hidden = true;
      button.disabled = true;
      try {
        await sign(form, button.dataset.decides);
      } catch (error) {
        const givenUp = error.name === "NotAllowedError" || error.name === "AbortError";
        problem.textContent = givenUp ? "No passkey was given. Nothing is decided." : "This did not work. Reload this page and try again.";
        problem.hidden = false;
        button.disabled = false;
      }
    });
  }
}

async function sign(form, decision) {
  const answer = await fetch(form.dataset.signs, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf": form.elements.csrf.value },
    body: JSON.stringify(form.elements.content_hash
      ? { decision, content_hash: form.elements.content_hash.value }
      : { decision, requests: [...form.elements].filter((each) => each.name.startsWith("request.")).map((each) => [each.name.slice("request.".length), each.value]) }),
  });
  const { nonce, options } = await answer.json();
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await navigator.credentials.get({ publicKey });
  form.elements.nonce.value = nonce;
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  const chosen = document.createElement("input");
  chosen.type = "hidden";
  chosen.name = "decision";
  chosen.value = decision;
  form.append(chosen);
  form.submit();
}
