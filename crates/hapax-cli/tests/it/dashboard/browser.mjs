// Somebody at the dashboard: signs in, decides a doubt, sends an event again, with a keyboard.
//
// Told by the environment: the gateway's tokens, a key in doubt, its store and the program, and what `visitor.mjs` is told.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { SIZES, accessible, browser, picture, tabTo, visit, wrong } from "./visitor.mjs";

const { DASHBOARD, TOKEN, READ_TOKEN, KEY, PICTURES, PROGRAM, STORE } = process.env;
const VIEWS = ["overview", "doubts", "keys", "outbox", "destination/billing", "consumers", "consumer/mailer", "housekeeping", "configuration", "keys?state=running"];

async function signIn(page, token) {
  await page.goto(DASHBOARD);
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/// Looks at keys, has begun to type, and sees what others decide without doing anything.
async function seesWhatOthersDecide(decide) {
  const page = await visit({ viewport: SIZES.desktop, colorScheme: "dark" });
  await signIn(page, READ_TOKEN);
  await page.goto(`${DASHBOARD}/#/keys`);
  const row = page.getByRole("row", { name: KEY });
  await row.getByText("in doubt").waitFor();
  await page.getByLabel("Tenant").fill("half ty");
  await decide();
  await row.getByText("completed").waitFor({ timeout: 120000 });
  const tenant = page.getByLabel("Tenant");
  assert.equal(await tenant.inputValue(), "half ty");
  assert.ok(await tenant.evaluate((element) => element === document.activeElement), "what somebody types in keeps the focus");
  await page.context().close();
}

async function decidesWithAKeyboard() {
  const page = await visit({ viewport: SIZES.desktop, colorScheme: "light" });
  await page.goto(DASHBOARD);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await accessible(page, "login");
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
  assert.equal(await prevented.locator(".worth").innerText(), "20.00 EUR not done a second time");

  await tabTo(page, "link", /^In doubt/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "In doubt" }).waitFor();
  await page.getByText("it was cut off before its answer came").waitFor();
  await page.getByText("It is not kept: only the fingerprint").waitFor();
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
  await timeline.getByText(/attempt 1 \(owner [0-9a-f]{16}\) was left in doubt: it was cut off/).waitFor();
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
  await page.getByText("You may look; changes need the token of admin_token, or a group of operate.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Resolve…" }).count(), 0);
  await page.goto(`${DASHBOARD}/#/consumer/mailer`);
  await page.getByText("orders/2").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Discard|Forgive/ }).count(), 0);
  await page.context().close();
}

async function liftsAQuarantine() {
  const looking = await visit({ viewport: SIZES.phone, colorScheme: "dark" });
  await signIn(looking, READ_TOKEN);
  const page = await visit({ viewport: SIZES.desktop, colorScheme: "light" });
  await signIn(page, TOKEN);
  assert.equal(await page.getByRole("region", { name: "Quarantine" }).count(), 0);
  execFileSync(PROGRAM, ["quarantine", "begin", "--store", STORE]);
  const banner = page.getByRole("region", { name: "Quarantine" });
  await banner.getByText("somebody said so").waitFor();
  await accessible(page, "a quarantine");
  await picture(page, "quarantine-light-desktop");
  const shown = looking.getByRole("region", { name: "Quarantine" });
  await shown.getByText("somebody said so").waitFor();
  assert.equal(await shown.getByRole("button").count(), 0);
  await shown.getByText("What to do").click();
  await shown.getByText("hapax quarantine lift").waitFor();
  await accessible(looking, "a quarantine, dark, phone");
  await picture(looking, "quarantine-dark-phone");
  await page.goto(`${DASHBOARD}/#/housekeeping`);
  await page.getByText("It is quarantined since").waitFor();
  await tabTo(page, "button", "Lift it…");
  await page.keyboard.press("Enter");
  await tabTo(page, "textbox", "Who you are");
  await page.keyboard.type("ada");
  await tabTo(page, "textbox", "Why");
  await page.keyboard.type("compared with the bank");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("would be run again").waitFor();
  await picture(page, "quarantine-dialog-light");
  await tabTo(page, "button", "Lift it");
  await page.keyboard.press("Enter");
  await banner.waitFor({ state: "detached" });
  await shown.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("region", { name: "The store's past" }).getByText("compared with the bank").waitFor();
  await page.context().close();
  await looking.context().close();
}

async function looksGoodEverywhere(scheme, size) {
  const page = await visit({ viewport: SIZES[size], colorScheme: scheme });
  await page.goto(DASHBOARD);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await accessible(page, `login, ${scheme}, ${size}`);
  await picture(page, `login-${scheme}-${size}`);
  await signIn(page, TOKEN);
  const id = await page.evaluate(async (key) => (await (await fetch(`/v1/operations?key=${key}`)).json()).operations[0].id, KEY);
  for (const view of [...VIEWS, `key/${id}`]) {
    await page.goto(`${DASHBOARD}/#/${view}`);
    await page.locator("main:not([aria-busy]) h1").waitFor();
    await page.waitForFunction((name) => document.querySelector("nav a[aria-current]")?.hash.slice(2) === name, view.replace(/^destination.*/, "outbox").replace(/^consumer\/.*/, "consumers").replace(/^key.*/, "keys"));
    assert.equal(await page.locator("html").getAttribute("data-scheme"), scheme);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${view} is ${wide} wide where ${room} are`);
    await accessible(page, `${view}, ${scheme}, ${size}`);
    await picture(page, `${view.replace(id, "").replaceAll(/[/?=]/g, "-")}-${scheme}-${size}`);
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
  await seesWhatOthersDecide(decidesWithAKeyboard);
  await liftsAQuarantine();
  assert.deepEqual(wrong, []);
  console.log("done");
} finally {
  await browser.close();
}
