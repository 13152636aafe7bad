// A store that may have forgotten keys: a banner on every view, and what is known about its past.

import { get } from "./api.js";
import { liftQuarantine } from "./change.js";
import { button, card, facts, make, notice, table } from "./elements.js";
import { clock } from "./words.js";

/// Shows or hides the banner. It is made anew only where something differs, so that nothing that has the
/// focus goes away.
export function banner(place, quarantine, context) {
  const told = quarantine ? `${quarantine.since} ${quarantine.cause} ${context.role}` : "";
  if (place.dataset.told === told) return;
  place.dataset.told = told;
  place.hidden = !quarantine;
  place.replaceChildren(...(quarantine ? [warning(quarantine, context)] : []));
}

function warning(quarantine, context) {
  const { since, because, missing_after: after } = quarantine;
  const lift = context.mayChange() ? button("Lift it…", "", () => liftQuarantine(quarantine)) : null;
  return make("div", { class: "notice doubt stack" },
    make("h2", null, "The store is quarantined"),
    make("p", null, make("b", null, `Since ${clock(since)}: ${because}. `),
      `Keys that are in it are answered for as ever. Keys that are not are refused (503 store-quarantined) and not run, because they may have been used in what was lost${after ? `, after ${clock(after)}` : ""}. Nothing is purged, and what was accepted for later waits.`),
    make("details", { class: "more" }, make("summary", null, "What to do"),
      make("ol", null,
        make("li", null, "See what may be missing: ", make("code", null, "hapax quarantine show --store URL"), ", or Housekeeping."),
        make("li", null, "Compare what your service did since then (its database, the bank, its log) with the keys that are here. Whatever must not happen twice needs its record first, or waits until no client retries it any more."),
        make("li", null, "Then lift it, here or with ", make("code", null, "hapax quarantine lift --store URL --why '…'"), "."))),
    make("div", { class: "buttons row" }, lift, make("a", { class: "more", href: "#/housekeeping" }, "What is known about it")));
}

/// Which database the store is, and who said what about its past.
export async function past() {
  const { incarnation, quarantine, lifted, processes } = await get("/quarantine");
  const verdict = quarantine ? notice("doubt", `It is quarantined since ${clock(quarantine.since)}: ${quarantine.because}.`) : notice("well", "It is not quarantined: keys that are not in it are run.");
  const columns = [{ name: "Process" }, { name: "Last seen" }, { name: "Commits" }, { name: "When" }];
  const rows = processes.map((one) => [
    make("span", { class: "mono" }, one.process), clock(one.seen_at), one.synchronous ? "wait for a standby" : "wait for nobody",
    one.before_the_change ? "before the change" : one.vouches ? "has what it was told" : "at work"]);
  return card("The store's past", make("div", { class: "stack" }, verdict,
    facts([
      ["It is", make("span", { class: "mono" }, incarnation)],
      ["It was", quarantine && make("span", { class: "mono" }, quarantine.before)],
      ["May be missing", quarantine && (quarantine.missing_after ? `what was acknowledged after ${clock(quarantine.missing_after)}` : "nobody can tell since when")],
      ["Last lifted", lifted && make("span", null, `${clock(lifted.at)} by `, make("b", null, lifted.who), ": ", make("q", null, lifted.why))],
    ]),
    rows.length > 0 && table("Processes at work on it", columns, rows)));
}
