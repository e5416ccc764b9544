// Server-sent events, by the graphql-sse client in its distinct connections mode.
import assert from "node:assert/strict";
import test from "node:test";
import { createClient } from "graphql-sse";
import { authorization, collect, operations, url } from "./target.mjs";

const connect = (options) => createClient({ url, headers: authorization, retryAttempts: 0, ...options });

test("a subscription sends its events and completes", async () => {
  const client = connect();
  const events = await collect(client.iterate(operations.subscription));
  assert.ok(events.length > 0);
  for (const event of events) assert.equal(event.errors, undefined);
  client.dispose();
});

test("a query is answered by one event", async () => {
  const client = connect();
  const [answer, ...more] = await collect(client.iterate(operations.query));
  assert.equal(answer.errors, undefined);
  assert.equal(more.length, 0);
  client.dispose();
});

test("what is not valid is an event with errors", async () => {
  const client = connect();
  const [answer] = await collect(client.iterate({ query: "{ thisFieldDoesNotExist }" }));
  assert.ok(answer.errors.length > 0);
  assert.equal("data" in answer, false);
  client.dispose();
});

test("a wrong token is refused with 401", async () => {
  const client = connect({ headers: { authorization: "Bearer cs_wrong" } });
  await assert.rejects(collect(client.iterate(operations.subscription)), (error) => error.response?.status === 401);
  client.dispose();
});
