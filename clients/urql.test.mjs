// urql, which names event streams in the Accept header of every request.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, fetchExchange } from "@urql/core";
import { authorization, operations, url } from "./target.mjs";

function connect(types) {
  return new Client({
    url,
    preferGetMethod: false,
    exchanges: [fetchExchange],
    fetchSubscriptions: true,
    fetchOptions: { headers: authorization },
    fetch: async (...request) => {
      const response = await fetch(...request);
      types.push(response.headers.get("content-type"));
      return response;
    },
  });
}

test("queries and mutations are answered as JSON", async () => {
  const types = [];
  const client = connect(types);
  const asked = await client.query(operations.query.query, operations.query.variables ?? {}).toPromise();
  assert.equal(asked.error, undefined);
  const changed = await client.mutation(operations.mutation.query, operations.mutation.variables ?? {}).toPromise();
  assert.equal(changed.error, undefined);
  for (const type of types) assert.match(type, /^application\/graphql-response\+json/);
});

test("a subscription is an event stream that ends", async () => {
  const types = [];
  let events = 0;
  await new Promise((resolve, reject) => {
    const { query, variables } = operations.subscription;
    connect(types).subscription(query, variables ?? {}).subscribe((result) => {
      if (result.error) reject(result.error);
      if (result.data) events++;
      if (!result.hasNext) resolve();
    });
  });
  assert.ok(events > 0);
  assert.match(types[0], /^text\/event-stream/);
});
