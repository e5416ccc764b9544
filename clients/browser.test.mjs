// The playground in Chromium: signed in by a link, it asks and subscribes, and loads
// nothing from elsewhere.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { chromium } from "playwright-core";
import { operations, signInCode, url } from "./target.mjs";

const executablePath = process.env.COUNTERSIGN_CHROMIUM ?? "/usr/bin/chromium";

test("a sign-in link opens the playground, which asks and subscribes", async () => {
  assert.ok(existsSync(executablePath), `no browser at ${executablePath}: apt-get install chromium, or set COUNTERSIGN_CHROMIUM`);
  const profile = await mkdtemp(join(tmpdir(), "countersign-browser-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath,
    viewport: { width: 1280, height: 800 },
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await browser.newPage();
    const origin = new URL(url).origin;
    const problems = [];
    page.on("request", (r) => {
      if (!r.url().startsWith(origin) && !r.url().startsWith("data:")) problems.push(`loads ${r.url()}`);
    });
    page.on("console", (m) => {
      if (m.type() === "error") problems.push(m.text());
    });
    page.on("pageerror", (e) => problems.push(e.message));

    await page.goto(`${origin}/sign-in#${signInCode()}`);
    await page.waitForURL(`${origin}/playground`);
    await page.waitForSelector(".graphiql-query-editor .CodeMirror");

    const [cookie] = await browser.cookies();
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, "Strict");

    for (const operation of [operations.query, operations.subscription]) {
      await page.evaluate(
        ({ query, variables }) => {
          document.querySelector(".graphiql-query-editor .CodeMirror").CodeMirror.setValue(query);
          document.querySelector('section[aria-label="Variables"] .CodeMirror').CodeMirror.setValue(JSON.stringify(variables ?? {}));
        },
        operation,
      );
      await page.waitForTimeout(500); // GraphiQL reads its editor a moment after a change
      await page.click(".graphiql-execute-button");
      await page.waitForFunction(() => {
        const text = document.querySelector(".result-window .CodeMirror")?.CodeMirror.getValue() ?? "";
        return text.includes('"data"') && !text.includes('"errors"');
      });
      if (process.env.COUNTERSIGN_SCREENSHOT) await page.screenshot({ path: process.env.COUNTERSIGN_SCREENSHOT });
      await page.evaluate(() => document.querySelector(".result-window .CodeMirror").CodeMirror.setValue(""));
    }
    assert.deepEqual(problems, []);

    await page.click("text=Sign out");
    await page.waitForURL(`${origin}/sign-in`);
    assert.deepEqual(await browser.cookies(), []);
  } finally {
    await browser.close();
    await rm(profile, { recursive: true, force: true });
  }
});
