// GraphQL over HTTP, by the public audit suite of graphql-http.
import assert from "node:assert/strict";
import test from "node:test";
import { serverAudits } from "graphql-http";
import { authorization, operations, url } from "./target.mjs";

const clients = {
  "signed in": (to, init = {}) => fetch(to, { ...init, headers: { ...init.headers, ...authorization } }),
  "not signed in": fetch,
};

for (const [who, fetchFn] of Object.entries(clients)) {
  for (const audit of serverAudits({ url, fetchFn })) {
    test(`audit ${audit.id}, ${who}: ${audit.name}`, async () => {
      const result = await audit.fn();
      // A warning counts as much as an error: "ok" or nothing.
      assert.equal(result.status, "ok", result.reason);
    });
  }
}

test("an operation needs a sign-in, and the refusal is 401 with a code", async () => {
  for (const accept of ["application/json", "application/graphql-response+json"]) {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify(operations.query),
    });
    assert.equal(response.status, 401);
    const { errors } = await response.json();
    assert.equal(errors[0].extensions.code, "UNAUTHENTICATED");
  }
});
