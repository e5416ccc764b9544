// The program that docs/quickstart.md shows, as it stands there.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { promisify } from "node:util";
import { operations, socketURL, token } from "../target.mjs";

test("the quick start's WebSocket client prints the steps after the ninth", async () => {
  const text = await readFile(new URL("../../docs/quickstart.md", import.meta.url), "utf8");
  const [, program] = text.match(/```js\n([^]*?)```/);
  const filled = program
    .replace("ws://127.0.0.1:8080/graphql", socketURL)
    .replace('"TOKEN"', JSON.stringify(token))
    .replace('"RUN"', JSON.stringify(operations.subscription.variables.runId));
  assert.notEqual(filled, program);
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", filled], {
    cwd: new URL("..", import.meta.url),
    timeout: 60_000,
  });
  const lines = stdout.trim().split("\n");
  assert.equal(lines[0], "9 DECISION");
  assert.equal(lines.at(-1), "17 SETTLED");
});
