// graphql-transport-ws, by the graphql-ws client.
import assert from "node:assert/strict";
import test from "node:test";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { authorization, collect, operations, socketURL, token } from "./target.mjs";

function connect(options) {
  return createClient({ url: socketURL, webSocketImpl: WebSocket, ...options });
}

for (const [name, connectionParams] of Object.entries({
  "the token as authorization": authorization,
  "the token as token": { token },
})) {
  test(`a subscription sends its events and completes: ${name}`, async () => {
    const client = connect({ connectionParams });
    const events = await collect(client.iterate(operations.subscription));
    assert.ok(events.length > 0);
    for (const event of events) assert.equal(event.errors, undefined);
    await client.dispose();
  });
}

test("queries and mutations are answered over the same connection", async () => {
  const client = connect({ connectionParams: authorization, lazy: false });
  for (const operation of [operations.query, operations.mutation]) {
    const [answer, ...more] = await collect(client.iterate(operation));
    assert.equal(answer.errors, undefined);
    assert.ok(answer.data);
    assert.equal(more.length, 0);
  }
  await client.dispose();
});

test("many subscriptions share a connection", async () => {
  const client = connect({ connectionParams: authorization });
  const all = await Promise.all(Array.from({ length: 20 }, () => collect(client.iterate(operations.subscription))));
  for (const events of all) assert.deepEqual(events, all[0]);
  await client.dispose();
});

for (const [name, connectionParams, code] of [
  ["a wrong token", { token: "cs_wrong" }, 4403],
  ["no token", {}, 4401],
]) {
  test(`${name} is refused with ${code}, and the client does not storm`, async () => {
    let attempts = 0;
    const client = connect({
      connectionParams,
      retryAttempts: 3,
      retryWait: () => Promise.resolve(),
      on: { connecting: () => attempts++ },
    });
    await assert.rejects(collect(client.iterate(operations.query)), (event) => event.code === code);
    assert.ok(attempts <= 4, `${attempts} attempts`);
    await client.dispose();
  });
}

test("the legacy graphql-ws subprotocol is refused", async () => {
  const socket = new WebSocket(socketURL, "graphql-ws");
  const status = await new Promise((resolve, reject) => {
    socket.on("unexpected-response", (request, response) => {
      resolve(response.statusCode);
      request.destroy();
    });
    socket.on("open", () => reject(new Error("it was accepted")));
    socket.on("error", reject);
  });
  assert.equal(status, 400);
});
