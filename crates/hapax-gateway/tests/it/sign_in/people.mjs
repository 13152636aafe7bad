// People who sign in by a provider, on another site than the dashboard.
//
// Told by the environment: what happens now, where the provider is, the gateway's token, a key in doubt, and what
// `visitor.mjs` is told.

import assert from "node:assert/strict";
import { SIZES, accessible, browser, picture, tabTo, visit, wrong } from "./visitor.mjs";

const { DASHBOARD, PROVIDER, TOKEN, KEY, STAGE } = process.env;
const DESKTOP = { viewport: SIZES.desktop, colorScheme: "light" };
const CALLBACK = `${DASHBOARD}/session/oidc/callback`;

/// Goes to the provider from a view of the dashboard, and says who they are.
async function leaves(page, name, view = "overview") {
  await page.goto(`${DASHBOARD}/#/${view}`);
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Continue" }).click();
}

const cookies = async (page) => (await page.context().cookies()).filter(({ name }) => name.startsWith("hapax-"));

async function decidesADoubtAsThePersonTheyAre() {
  const page = await visit(DESKTOP, [PROVIDER]);
  await page.goto(`${DASHBOARD}/#/doubts`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await accessible(page, "login with a provider");
  await picture(page, "login-provider-light");
  await tabTo(page, "link", "Sign in with Example");
  await page.keyboard.press("Enter");
  await page.getByLabel("Name").fill("ada");
  const [login] = await cookies(page);
  assert.deepEqual([login.sameSite, login.httpOnly, login.path], ["Lax", true, "/session/oidc"]);
  await page.keyboard.press("Enter");
  // They are where they wanted to go before.
  await page.getByRole("heading", { name: "In doubt" }).waitFor();
  assert.equal(page.url(), `${DASHBOARD}/#/doubts`);
  const [session, ...more] = await cookies(page);
  assert.deepEqual([session.sameSite, session.httpOnly, more.length], ["Strict", true, 0]);
  assert.equal(await page.locator("#person").innerText(), "ada@example.com");
  await page.locator("#feed.live").waitFor();

  await page.getByRole("button", { name: "Resolve…" }).click();
  const dialog = page.getByRole("dialog");
  const who = dialog.getByLabel("Who you are");
  assert.deepEqual([await who.inputValue(), await who.isEditable()], ["ada@example.com", false]);
  await dialog.getByLabel("It happened").check();
  await dialog.getByRole("textbox", { name: "Body" }).fill('{"paid":true}');
  await dialog.getByLabel("Why", { exact: true }).fill("found in the bank's ledger");
  await accessible(page, "the dialog of a person");
  await picture(page, "dialog-person-light");
  await dialog.getByRole("button", { name: "Check first" }).click();
  await dialog.locator(".notice").waitFor();
  // Not long after, its upstream may still be at work.
  const despite = dialog.getByLabel("Do it although somebody may be at work on it");
  if (await despite.isVisible()) {
    await despite.check();
    await dialog.getByRole("button", { name: "Check first" }).click();
  }
  await dialog.getByRole("button", { name: "Resolve it" }).click();
  await page.getByText("Nothing is in doubt.").waitFor();
  await page.goto(`${DASHBOARD}/#/keys?key=${KEY}`);
  await page.getByRole("link", { name: KEY }).click();
  const timeline = page.getByRole("region", { name: "Timeline" });
  await timeline.getByText(/ada@example\.com: resolve_completed of attempt 1 .*found in the bank's ledger/).first().waitFor();

  // A link on another site leads to the page, which works; nothing is begun from there.
  await page.goto(`${PROVIDER}/.well-known/openid-configuration`);
  await page.evaluate((url) => (location.href = url), `${DASHBOARD}/#/overview`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.goto(`${PROVIDER}/.well-known/openid-configuration`);
  const [refused] = await Promise.all([
    page.waitForResponse(`${DASHBOARD}/session/oidc`),
    // To its end: what is begun before that is interrupted by it.
    page.waitForURL(`${DASHBOARD}/session/oidc`),
    page.evaluate((url) => (location.href = url), `${DASHBOARD}/session/oidc`),
  ]);
  assert.equal(refused.status(), 403);
  await page.goto(DASHBOARD);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(await cookies(page), []);
  await page.context().close();
}

async function mayOnlyLook() {
  const page = await visit({ viewport: SIZES.phone, colorScheme: "dark" }, [PROVIDER]);
  await leaves(page, "bo", "doubts");
  await page.getByText("You may look; changes need the token of admin_token, or a group of operate.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Resolve…" }).count(), 0);
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= room, `the page of a person is ${wide} wide where ${room} are`);
  await accessible(page, "the page of a person");
  await picture(page, "person-dark-phone");
  await page.context().close();
}

async function isToldWhyNot() {
  const page = await visit(DESKTOP, [PROVIDER]);
  await leaves(page, "cy");
  await page.getByRole("heading", { name: "You are not signed in by Example" }).waitFor();
  await page.getByText("You are cy@example.com, and in no group").waitFor();
  assert.deepEqual(await cookies(page), []);
  await accessible(page, "the page of somebody without a role");
  await picture(page, "refused-light");
  await page.getByRole("link", { name: "Back to signing in" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("It said: access_denied").waitFor();
  await page.context().close();
}

/// An attacker signs in as themselves, stops at the last step, and sends somebody that address.
async function isNotSignedInAsSomebodyElse() {
  const attacker = await visit(DESKTOP, [PROVIDER]);
  await attacker.route(`${CALLBACK}*`, (route) => route.abort());
  const [last] = await Promise.all([attacker.waitForRequest(`${CALLBACK}*`), leaves(attacker, "ada")]);
  const somebody = await visit(DESKTOP, [PROVIDER]);
  const answer = await somebody.goto(last.url());
  assert.equal(answer.status(), 400);
  await somebody.getByText("This browser began no sign-in").waitFor();
  assert.deepEqual(await cookies(somebody), []);
  await somebody.context().close();
  await attacker.context().close();
}

/// The provider is away: the page says so, and takes the token.
async function signsInByTheToken() {
  const page = await visit(DESKTOP, [PROVIDER]);
  const alert = page.getByRole("alert").getByText("Example does not answer.");
  // For two seconds it is taken to be there.
  for (const deadline = Date.now() + 15000; Date.now() < deadline; ) {
    await page.goto(DASHBOARD);
    await page.getByRole("link", { name: "Sign in with Example" }).click().catch(() => null);
    if (await alert.waitFor({ timeout: 1000 }).then(() => true, () => false)) break;
  }
  await alert.waitFor();
  await accessible(page, "login while the provider is away");
  await picture(page, "login-provider-away-light");
  await page.getByLabel("Token").fill(TOKEN);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.context().close();
}

async function signsInAgain() {
  const page = await visit(DESKTOP, [PROVIDER]);
  // For a second after it did not answer it is left alone.
  for (const deadline = Date.now() + 15000; Date.now() < deadline; ) {
    await page.goto(`${DASHBOARD}/session/oidc`);
    if (page.url().startsWith(PROVIDER)) break;
  }
  await leaves(page, "ada");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.context().close();
}

const STAGES = {
  there: [mayOnlyLook, isToldWhyNot, isNotSignedInAsSomebodyElse, decidesADoubtAsThePersonTheyAre],
  away: [signsInByTheToken],
  back: [signsInAgain],
};

try {
  for (const scene of STAGES[STAGE]) await scene();
  assert.deepEqual(wrong, []);
  console.log("done");
} finally {
  await browser.close();
}
