// What the gateway does by itself.

import { get } from "./api.js";
import { card, empty, facts, head, make, notice, table } from "./elements.js";
import { past as storePast } from "./quarantine.js";
import { clock, count, span } from "./words.js";

const AGES = [["under_1m", "under a minute"], ["under_1h", "under an hour"], ["under_1d", "under a day"], ["over_1d", "over a day"]];

export const housekeeping = {
  title: "Housekeeping",
  isRenewed: true,
  async show(main) {
    const [document, past] = await Promise.all([get("/housekeeping"), storePast()]);
    main.replaceChildren(
      head("Housekeeping", "The sweeper looks after owners that are overdue, the purger removes what is past retention."),
      make("div", { class: "stack" },
        make("div", { class: "sides" }, make("div", { class: "stack" }, card("The store's clock", theClock(document.clock)), past), card("Since the gateway was started", counts(document))),
        card("Lately", log(document.log)),
        card("Keys in doubt, by route", doubts(document))),
    );
  },
};

function theClock({ now, is_trusted: isTrusted, steady_since: since, trusted_until: until }) {
  const verdict = isTrusted ? notice("well", "It is trusted: what is past retention expires.") : notice("doubt", "It jumped, and is not trusted yet: nothing expires by it until it has stayed.");
  return make("div", { class: "stack" }, verdict, facts([["It says", clock(now)], ["Steady since", since ? clock(since) : "nobody watched it before"], ["Trusted until", until && clock(until)]]));
}

function counts({ counts, reloads_applied: applied, reloads_refused: refused }) {
  const rows = counts.map(({ what, count: number }) => [what.replace(/\.$/, ""), count(number)]);
  rows.push(["Configurations put in force", count(applied)], ["Configurations refused", count(refused)]);
  return table("Counts", [{ name: "What" }, { name: "How often", number: true }], rows);
}

function log(entries) {
  if (!entries.length) return empty("Nothing had to be done.", "");
  return make("ol", { class: "timeline" }, entries.map(({ at, what, count: number }) => make("li", null, make("time", { datetime: at }, clock(at)), `${count(number)} × ${what.replace(/\.$/, "")}`)));
}

function doubts({ in_doubt: routes, looked_seconds: looked }) {
  if (looked === null) return empty("Nobody has looked yet.", "");
  const columns = [{ name: "Route" }, ...AGES.map(([, name]) => ({ name, number: true })), { name: "Oldest", number: true }];
  const rows = routes.map(({ route, by_age: ages, oldest_seconds: oldest }) => [make("span", { class: "mono" }, route), ...AGES.map(([age]) => count(ages[age] ?? 0)), oldest ? span(oldest) : ""]);
  return make("div", null, table("Keys in doubt, by route and age", columns, rows), make("p", { class: "hint" }, `Looked for ${span(looked)} ago.`));
}
