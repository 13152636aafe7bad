// A person before a browser without a window, in which nothing may go wrong.
//
// Told by the environment: where the gateway is, which browser, and, if pictures are wanted, where to put them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const { DASHBOARD, CHROMIUM, PICTURES } = process.env;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

export const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
/// What went wrong so far.
export const wrong = [];

/// A browser of its own, in which nothing may go wrong and nobody else is asked than the gateway and these.
export async function visit(options, others = []) {
  const context = await browser.newContext({ locale: "en-GB", ...options });
  // Axe is run beside the page, whose policy would not let it in.
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.on("pageerror", (error) => wrong.push(`error: ${error}`));
  page.on("console", (message) => message.type() === "error" && !/401|Failed to load resource/.test(message.text()) && wrong.push(message.text()));
  page.on("request", (request) => [DASHBOARD, ...others].some((origin) => request.url().startsWith(origin)) || wrong.push(`asked ${request.url()}`));
  return page;
}

/// What a screen reader or a person with weak eyes would stumble over.
export async function accessible(page, where) {
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send("Page.getFrameTree");
  const { executionContextId } = await client.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  const run = async (expression) => {
    const { result, exceptionDetails } = await client.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return result.value;
  };
  await run(AXE + "; 0");
  const found = await run(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html.slice(0, 160) + " " + failureSummary).join(" | ")))`);
  assert.deepEqual(found, [], where);
  await client.detach();
}

export const picture = (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });

/// Goes to something by the Tab key alone.
export async function tabTo(page, role, name) {
  const wanted = page.getByRole(role, { name, exact: true }).first();
  await wanted.waitFor();
  for (let presses = 0; presses < 60; presses++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no number of tabs leads to ${role} ${name}`);
}
