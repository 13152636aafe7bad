// Somebody at the dashboard: signs in, decides a doubt, sends an event again, with a keyboard.
//
// Told by the environment: where the gateway is, its tokens, which browser, and, if pictures are
// wanted, where to put them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const { DASHBOARD, TOKEN, READ_TOKEN, CHROMIUM, KEY, PICTURES } = process.env;
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["overview", "doubts", "keys", "outbox", "destination/billing", "consumers", "consumer/mailer", "housekeeping", "configuration"];
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/// A browser of its own, in which nothing may go wrong and nobody else is asked.
async function visit(options) {
  const context = await browser.newContext({ locale: "en-GB", ...options });
  // Axe is run beside the page, whose policy would not let it in.
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.on("pageerror", (error) => wrong.push(`error: ${error}`));
  page.on("console", (message) => message.type() === "error" && !/401|Failed to load resource/.test(message.text()) && wrong.push(message.text()));
  page.on("request", (request) => request.url().startsWith(DASHBOARD) || wrong.push(`asked ${request.url()}`));
  return page;
}
const wrong = [];

async function signIn(page, token) {
  await page.goto(DASHBOARD);
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/// What a screen reader or a person with weak eyes would stumble over.
async function accessible(page, where) {
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

const picture = (page, name) => PICTURES && page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });

/// Goes to something by the Tab key alone.
async function tabTo(page, role, name) {
  const wanted = page.getByRole(role, { name, exact: true }).first();
  await wanted.waitFor();
  for (let presses = 0; presses < 60; presses++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`no number of tabs leads to ${role} ${name}`);
}

async function decidesWithAKeyboard() {
  const page = await visit({ viewport: SIZES.desktop, colorScheme: "light" });
  await page.goto(DASHBOARD);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await accessible(page, "login");
  await picture(page, "login-light");
  await page.keyboard.type("not the token");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("not the gateway's admin token").waitFor();
  await page.keyboard.type(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator("#feed.live").getByText(/\d\d:\d\d:\d\d/).waitFor();
  const prevented = page.getByRole("region", { name: "Prevented" });
  assert.equal(await prevented.locator(".replayed b").innerText(), "2");
  assert.equal(await prevented.locator(".mismatch b").innerText(), "1");

  await tabTo(page, "link", /^In doubt/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "In doubt" }).waitFor();
  await page.getByText("it was cut off before its answer came").waitFor();
  await accessible(page, "a doubt");
  await picture(page, "doubt-open-light");
  await tabTo(page, "button", "Resolve…");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  assert.ok(await dialog.getByLabel("It happened").evaluate((element) => element === document.activeElement), "the dialog has the focus");
  await page.keyboard.press("Space");
  await tabTo(page, "textbox", "Body");
  await page.keyboard.type('{"paid":true}');
  await tabTo(page, "textbox", "Who you are");
  await page.keyboard.type("ada");
  await tabTo(page, "textbox", "Why");
  await page.keyboard.type("found in the bank's ledger");
  await page.keyboard.press("Enter");
  await dialog.getByText("Nothing is changed yet.").waitFor();
  assert.match(await dialog.innerText(), /It would be completed/);
  await accessible(page, "the dialog");
  await picture(page, "dialog-light");
  await tabTo(page, "button", "Resolve it");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing is in doubt.").waitFor();

  await tabTo(page, "link", "Keys");
  await page.keyboard.press("Enter");
  await tabTo(page, "searchbox", "Key, or an id");
  await page.keyboard.type(KEY);
  await page.keyboard.press("Enter");
  await page.waitForURL(/key=/);
  await tabTo(page, "link", KEY);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: KEY }).waitFor();
  const timeline = page.getByRole("region", { name: "Timeline" });
  await timeline.getByText(/ada: resolve_completed of attempt 1 .*found in the bank's ledger/).first().waitFor();
  await tabTo(page, "button", /Show the body/);
  await page.keyboard.press("Enter");
  await page.getByText('{"paid":true}').waitFor();
  await accessible(page, "a key");
  await picture(page, "key-light");

  await tabTo(page, "link", "Outbox");
  await page.keyboard.press("Enter");
  await tabTo(page, "link", "billing");
  await page.keyboard.press("Enter");
  await tabTo(page, "button", "Send again…");
  await page.keyboard.press("Enter");
  await tabTo(page, "textbox", "Why");
  await page.keyboard.type("billing is mended");
  await page.keyboard.press("Enter");
  await page.getByText("1 event would be sent again").waitFor();
  await tabTo(page, "button", "Send again");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByText(/Nothing is parked|to be sent again/).first().waitFor();

  await tabTo(page, "link", "Consumers");
  await page.keyboard.press("Enter");
  await tabTo(page, "link", "mailer");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Tried again" }).getByText("orders/3").waitFor();
  const row = page.getByRole("row", { name: /orders\/2/ });
  assert.match(await row.innerText(), /poison it failed 1 times, at last with: it explodes/);
  await row.getByRole("button", { name: "Show" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Dead letter orders/2" }).getByText("explosive", { exact: true }).waitFor();
  await accessible(page, "a dead letter");
  await picture(page, "dead-letter-light");
  await tabTo(page, "button", "Forgive…");
  await page.keyboard.press("Enter");
  await tabTo(page, "textbox", "Why");
  await page.keyboard.type("the mailer is mended");
  await page.keyboard.press("Enter");
  await dialog.getByText("Nothing is sent from here").waitFor();
  await picture(page, "forgive-light");
  await tabTo(page, "button", "Forgive it");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await row.waitFor({ state: "detached" });
  assert.equal(await page.getByRole("row", { name: /orders\/1/ }).count(), 1);

  await tabTo(page, "button", "Sign out");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.goto(`${DASHBOARD}/#/configuration`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.context().close();
}

async function mayOnlyLook() {
  const page = await visit({ viewport: SIZES.desktop });
  await signIn(page, READ_TOKEN);
  await page.goto(`${DASHBOARD}/#/doubts`);
  await page.getByText("You may look; changes need the token of admin_token.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Resolve…" }).count(), 0);
  await page.goto(`${DASHBOARD}/#/consumer/mailer`);
  await page.getByText("orders/2").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Discard|Forgive/ }).count(), 0);
  await page.context().close();
}

async function looksGoodEverywhere(scheme, size) {
  const page = await visit({ viewport: SIZES[size], colorScheme: scheme });
  await signIn(page, TOKEN);
  for (const view of VIEWS) {
    await page.goto(`${DASHBOARD}/#/${view}`);
    await page.locator("main:not([aria-busy]) h1").waitFor();
    await page.waitForFunction((name) => document.querySelector("nav a[aria-current]")?.hash.slice(2) === name, view.replace(/^destination.*/, "outbox").replace(/^consumer\/.*/, "consumers"));
    assert.equal(await page.locator("html").getAttribute("data-scheme"), scheme);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${view} is ${wide} wide where ${room} are`);
    await accessible(page, `${view}, ${scheme}, ${size}`);
    await picture(page, `${view.replace("/", "-")}-${scheme}-${size}`);
  }
  await page.context().close();
}

try {
  await mayOnlyLook();
  await looksGoodEverywhere("light", "desktop");
  await looksGoodEverywhere("dark", "phone");
  if (PICTURES) {
    await looksGoodEverywhere("dark", "desktop");
    await looksGoodEverywhere("light", "phone");
  }
  await decidesWithAKeyboard();
  assert.deepEqual(wrong, []);
  console.log("done");
} finally {
  await browser.close();
}
