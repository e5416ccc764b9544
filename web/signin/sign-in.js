// Redeems the one-time code of a sign-in link for a cookie session.
"use strict";

const form = document.getElementById("form");
const field = document.getElementById("code");
const status = document.getElementById("status");

async function redeem(code) {
  status.textContent = "Signing in…";
  let response;
  try {
    response = await fetch("/sign-in", {
      method: "POST",
      headers: { "content-type": "application/json", "x-countersign-csrf": "1" },
      body: JSON.stringify({ code }),
    });
  } catch {
    status.textContent = "The server cannot be reached.";
    return;
  }
  if (response.ok) {
    location.replace("/playground");
    return;
  }
  const answer = await response.json().catch(() => ({}));
  status.textContent = answer.errors?.[0]?.message ?? "Signing in failed.";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  redeem(field.value.trim());
});

const code = decodeURIComponent(location.hash.slice(1));
if (code) {
  // The code is used up by this; it need not stay in the address or the history.
  history.replaceState(null, "", location.pathname);
  field.value = code;
  redeem(code);
}
