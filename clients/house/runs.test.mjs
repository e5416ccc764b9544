// A run watched while it happens, by each of the clients.
import assert from "node:assert/strict";
import test, { before } from "node:test";
import { Client, fetchExchange } from "@urql/core";
import { createClient as createEventClient } from "graphql-sse";
import { createClient as createSocketClient } from "graphql-ws";
import WebSocket from "ws";
import { authorization, collect, socketURL, token, url } from "../target.mjs";
import { decide, gapless, ready, start, watch } from "./house.mjs";

let process_;
before(async () => {
  process_ = await ready();
});

const socket = (connectionParams = { token }) => createSocketClient({ url: socketURL, webSocketImpl: WebSocket, retryAttempts: 0, connectionParams });
const step = (event) => {
  assert.equal(event.errors, undefined);
  return event.data.runEvents;
};

// live reads steps one by one. The decision is made only when the card was seen, so
// that everything after it can only have come live.
async function live(events, runId, ...decision) {
  const steps = [];
  for await (const event of events) {
    steps.push(step(event));
    if (steps.at(-1).kind === "SUSPENDED") await decide(runId, ...decision);
  }
  assert.ok(steps.some((s) => s.kind === "DECISION"));
  gapless(steps);
  return steps;
}

test("graphql-ws sees the steps before and after the decision, without a gap, and the end", async () => {
  const client = socket();
  const runId = await start(process_);
  const steps = await live(client.iterate(watch(runId)), runId, "APPROVE");
  assert.ok(steps.some((s) => s.kind === "WRITE"));
  await client.dispose();
});

test("graphql-sse sees the same", async () => {
  const client = createEventClient({ url, headers: authorization, retryAttempts: 0 });
  const runId = await start(process_);
  await live(client.iterate(watch(runId)), runId, "DENY", "SKIP");
  client.dispose();
});

test("urql sees the same", async () => {
  const client = new Client({
    url,
    preferGetMethod: false,
    exchanges: [fetchExchange],
    fetchSubscriptions: true,
    fetchOptions: { headers: authorization },
  });
  const runId = await start(process_);
  const { query, variables } = watch(runId);
  const steps = [];
  await new Promise((resolve, reject) => {
    client.subscription(query, variables).subscribe((result) => {
      if (result.error) return reject(result.error);
      if (result.data && steps.at(-1)?.sequence !== result.data.runEvents.sequence) {
        steps.push(result.data.runEvents);
        if (steps.at(-1).kind === "SUSPENDED") decide(runId, "DENY", "SKIP").catch(reject);
      }
      if (!result.hasNext) resolve();
    });
  });
  gapless(steps);
});

test("a viewer whose connection breaks goes on after the last step that it saw", async () => {
  const runId = await start(process_);
  const seen = [];
  const first = socket();
  for await (const event of first.iterate(watch(runId))) {
    seen.push(step(event));
    if (seen.length < 4) continue;
    first.terminate(); // as a network would: without a word
    break;
  }
  const second = socket();
  for await (const event of second.iterate(watch(runId, seen.at(-1).sequence))) {
    seen.push(step(event));
    if (seen.at(-1).kind === "SUSPENDED") await decide(runId, "DENY", "SKIP");
  }
  gapless(seen);
  await second.dispose();
});

test("many viewers see the same steps", async () => {
  const runId = await start(process_);
  const clients = Array.from({ length: 10 }, () => socket());
  const watched = clients.map((client) => collect(client.iterate(watch(runId))));
  for await (const event of clients[0].iterate(watch(runId))) {
    if (step(event).kind === "SUSPENDED") await decide(runId, "DENY", "SKIP");
  }
  const all = (await Promise.all(watched)).map((events) => events.map(step));
  for (const steps of all) assert.deepEqual(steps, all[0]);
  gapless(all[0]);
  await Promise.all(clients.map((client) => client.dispose()));
});

test("a run that nobody started is an error of the subscription", async () => {
  const client = socket();
  const events = await collect(client.iterate(watch("run_agrc5mou4n553ebxubfnb4x6li")));
  assert.equal(events.length, 1);
  assert.equal(events[0].errors[0].extensions.code, "NOT_FOUND");
  await client.dispose();
});

test("a wrong token is refused with 4403 and no token with 4401", async () => {
  const runId = await start(process_);
  for (const [params, code] of [
    [{ token: "cs_wrong" }, 4403],
    [{}, 4401],
  ]) {
    const client = socket(params);
    await assert.rejects(collect(client.iterate(watch(runId))), (closed) => closed.code === code);
    await client.dispose();
  }
});
