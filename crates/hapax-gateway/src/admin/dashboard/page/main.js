// The page: who is here, which view is shown, what the gateway tells.

import { get, session, signOut } from "./api.js";
import { configuration } from "./configuration.js";
import { consumer, consumers } from "./consumers.js";
import { doubts } from "./doubts.js";
import { announce, find, make, notice, say } from "./elements.js";
import { housekeeping } from "./housekeeping.js";
import { keys } from "./keys.js";
import { showLogin, wanted } from "./login.js";
import { operation } from "./operation.js";
import { destination, outbox } from "./outbox.js";
import { overview } from "./overview.js";
import { banner } from "./quarantine.js";
import { renew } from "./renew.js";
import { count, timeOfDay } from "./words.js";

/// The views, in the order of the navigation; those without a place in it follow.
const VIEWS = { overview, doubts, keys, outbox, consumers, housekeeping, configuration };
const INNER = { key: { view: operation, under: "keys" }, destination: { view: destination, under: "outbox" }, consumer: { view: consumer, under: "consumers" } };
const RETRY_MILLIS = 5000;
const POLL_MILLIS = 10000;
/// How often what is shown is read anew, and how much longer than the reading took that has to be: ten who look
/// keep the store busy for no more than a fiftieth of the time.
const RENEW_MILLIS = 10000;
const RENEW_SHARE = 500;

const context = { role: null, version: "", figures: null, go: (hash) => (location.hash = hash), mayChange: () => context.role === "operate", refresh: () => show() };
let shown = {};
let stream = null;
let timer = null;
let turn = 0;
let renewAt = 0;
let isRenewing = false;
let wasQuarantined = false;

async function begin() {
  stop();
  let who;
  try {
    who = await session();
  } catch (error) {
    return find("main").replaceChildren(notice("ill", error.message));
  }
  context.role = who.role;
  context.version = who.version;
  find("nav").hidden = !who.role;
  find("sign-out").hidden = !who.role;
  find("person").hidden = !who.person;
  say(find("person"), who.person ?? "");
  if (!who.role) {
    banner(find("banner"), null, context);
    status("", "");
    document.title = "Sign in · Hapax";
    showLogin(find("main"), who, begin);
    return find("main").querySelector("input, a.main")?.focus();
  }
  const view = wanted();
  if (view && !location.hash) history.replaceState(null, "", view);
  navigation();
  listen();
  return show();
}

function stop() {
  stream?.close();
  stream = null;
  clearTimeout(timer);
}

/// Which view the address names, and what it says about it.
function place() {
  const [path, search] = (location.hash.replace(/^#\/?/, "") || "overview").split("?");
  const [name, ...rest] = path.split("/");
  const parameters = { id: rest.map(decodeURIComponent).join("/"), query: Object.fromEntries(new URLSearchParams(search ?? "")) };
  const inner = INNER[name];
  if (inner && parameters.id) return { ...inner, parameters };
  const under = VIEWS[name] ? name : "overview";
  return { view: VIEWS[under], under, parameters };
}

async function show() {
  if (!context.role) return;
  const mine = ++turn;
  const { view, under, parameters } = place();
  shown = {};
  for (const link of find("nav").querySelectorAll("a")) {
    if (link.dataset.view === under) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.title} · Hapax`;
  document.querySelector("dialog")?.close();
  const main = find("main");
  main.setAttribute("aria-busy", "true");
  // A view that was left while it was read does not replace the one after it.
  const part = make("div");
  try {
    const live = await view.show(part, context, parameters);
    if (mine !== turn || !context.role) return;
    shown = { ...live };
    if (view.isRenewed) shown.renew ??= () => again(view, parameters, part, mine);
    renewAt = Date.now() + RENEW_MILLIS;
  } catch (error) {
    if (mine !== turn || !context.role) return;
    part.replaceChildren(make("h1", { tabindex: "-1" }, view.title), notice("ill", error.message));
  }
  main.replaceChildren(part);
  main.removeAttribute("aria-busy");
  part.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/// The same view, read anew into what is shown.
async function again(view, parameters, part, mine) {
  const fresh = make("div");
  await view.show(fresh, context, parameters);
  if (mine === turn) renew(part, fresh);
}

/// Reads what is shown anew, unless it is too early, nobody looks, or somebody is about to do something with it.
async function renewShown() {
  const isSelecting = getSelection()?.isCollapsed === false;
  if (!shown.renew || isRenewing || Date.now() < renewAt || document.hidden || isSelecting || document.querySelector("dialog")) return;
  isRenewing = true;
  const began = performance.now();
  // What cannot be read stays as it is; the feed says whether the gateway answers.
  await shown.renew().catch(() => null);
  isRenewing = false;
  renewAt = Date.now() + Math.max(RENEW_MILLIS, RENEW_SHARE * (performance.now() - began));
}

function navigation() {
  const items = Object.entries(VIEWS).map(([name, view]) =>
    make("li", null, make("a", { href: `#/${name}`, "data-view": name }, view.title, name === "doubts" && make("span", { class: "badge", id: "doubts-badge", hidden: true }))));
  find("nav").replaceChildren(make("ul", null, items));
}

function listen() {
  stream = new EventSource("/v1/events");
  stream.addEventListener("figures", (event) => tell(JSON.parse(event.data), "live"));
  stream.addEventListener("end", () => lost("The gateway is stopping, or the session is over."));
  stream.addEventListener("error", () => {
    if (stream?.readyState === EventSource.CLOSED) poll();
    else status("lost", "The gateway does not answer; trying again");
  });
}

function lost(why) {
  stop();
  status("lost", why);
  timer = setTimeout(async () => {
    const who = await session().catch(() => null);
    if (who && !who.role) begin();
    else if (who) listen();
    else lost("The gateway does not answer; trying again");
  }, RETRY_MILLIS);
}

/// Asks now and then, where as many listen as may.
async function poll() {
  stop();
  try {
    const { now } = await get("/overview");
    tell(now, "");
    timer = setTimeout(poll, POLL_MILLIS);
  } catch {
    if (context.role) lost("The gateway does not answer; trying again");
  }
}

function tell(figures, kind) {
  context.figures = figures;
  if (figures.draining) status(kind, "The gateway is stopping");
  else status(kind, kind === "live" ? "Live" : "Now and then", timeOfDay(figures.at));
  const badge = find("doubts-badge");
  if (badge) {
    const keys = figures.in_doubt?.keys ?? 0;
    badge.hidden = !keys;
    say(badge, count(keys));
    badge.setAttribute("aria-label", `${count(keys)} in doubt`);
  }
  const { quarantine } = figures;
  if (quarantine && !wasQuarantined) announce(`The store is quarantined: ${quarantine.because}`);
  if (!quarantine && wasQuarantined) announce("The quarantine of the store is over");
  wasQuarantined = Boolean(quarantine);
  banner(find("banner"), quarantine, context);
  shown.figures?.(figures);
  renewShown();
}

/// Told to everybody when it changes in kind, not at every tick.
function status(kind, text, when = "") {
  const feed = find("feed");
  if (feed.dataset.kind !== kind) {
    feed.dataset.kind = kind;
    feed.className = `feed ${kind}`;
    if (kind === "lost") announce(text);
  }
  feed.replaceChildren(text, make("span", { class: "when" }, when && ` ${when}`));
}

/// Light, dark, or as the system is.
function scheme(wanted) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = wanted ? wanted === "dark" : dark.matches;
  document.documentElement.dataset.scheme = isDark ? "dark" : "light";
  find("scheme").textContent = isDark ? "Light" : "Dark";
  find("scheme").setAttribute("aria-label", isDark ? "Use light colours" : "Use dark colours");
}

const SCHEME = "hapax-scheme";
scheme(localStorage.getItem(SCHEME));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => scheme(localStorage.getItem(SCHEME)));
find("scheme").addEventListener("click", () => {
  const next = document.documentElement.dataset.scheme === "dark" ? "light" : "dark";
  localStorage.setItem(SCHEME, next);
  scheme(next);
});
find("sign-out").addEventListener("click", async () => {
  await signOut().catch(() => null);
  begin();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});
window.addEventListener("hashchange", show);
window.addEventListener("signed-out", () => context.role && begin());
begin();
