// What was prevented, and what goes on.

import { get } from "./api.js";
import { SERIES, of, spark, stateChart, verdictChart } from "./charts.js";
import { card, empty, head, make, table } from "./elements.js";
import { renew } from "./renew.js";
import { clock, count, counted, millis, money, perSecond, span } from "./words.js";

const PREVENTED = [
  ["replayed", "got the stored answer"],
  ["busy", "told that it is at work"],
  ["mismatch", "refused: another request under the key"],
  ["in_doubt", "held: its outcome is unknown"],
];

/// What would have been done with requests of routes that are watched alone.
const WATCHED = [
  ["replayed", "replayed", "done twice: would have got the stored answer"],
  ["busy", "busy", "sent while the first was at work"],
  ["mismatch", "mismatch", "would have been refused: another request under the key"],
  ["in_doubt", "in_doubt", "sent again after an answer nobody heard"],
  ["key_missing_again", "busy", "without a key, and look like retries"],
];

export const overview = {
  title: "Overview",
  async show(main, context) {
    const { now, samples, samples_max: most } = await get("/overview");
    const parts = { prevented: make("div"), observed: make("div"), tiles: make("div", { class: "tiles" }), chart: make("div"), states: make("div"), routes: make("div") };
    main.replaceChildren(
      head("Overview", "…"),
      make("div", { class: "stack" }, parts.prevented, parts.observed, parts.tiles, card("Requests by verdict", parts.chart), card("Keys by the state they entered", make("p", { class: "hint" }, "Through this gateway, in the last hour."), parts.states), card("Routes", parts.routes)),
    );
    const draw = (figures) => {
      const { sample } = figures;
      if (sample && sample.at !== samples.at(-1)?.at) samples.push(sample);
      if (samples.length > most) samples.splice(0, samples.length - most);
      main.querySelector(".head .hint").textContent = `Since the gateway was started ${span(figures.uptime_seconds)} ago.`;
      const fresh = {
        prevented: [prevented(figures)], observed: observed(figures), tiles: tiles(figures, samples),
        chart: [verdictChart(samples)], states: [stateChart(samples)], routes: [routes(figures.routes)],
      };
      for (const [name, drawn] of Object.entries(fresh)) renew(parts[name], make("div", null, drawn));
    };
    draw(context.figures ?? now);
    return { figures: draw };
  },
};

function prevented({ verdicts, repeated_amounts: amounts }) {
  const all = PREVENTED.reduce((sum, [word]) => sum + (verdicts[word] ?? 0), 0);
  const parts = PREVENTED.map(([word, what]) => make("li", { class: word }, make("b", null, count(verdicts[word] ?? 0)), make("span", null, what)));
  return make("section", { class: "card prevented", "aria-label": "Prevented" },
    make("div", null, make("p", { class: "figure" }, count(all)), make("p", null, all === 1 ? "repeated request had no second effect" : "repeated requests had no second effect"), worth(amounts)),
    make("ul", { class: "parts" }, parts));
}

function observed({ observed }) {
  if (!observed) return [];
  const { what, amounts } = observed;
  const all = Object.values(what).reduce((sum, number) => sum + number, 0);
  const parts = WATCHED.map(([word, look, text]) => make("li", { class: look }, make("b", null, count(what[word] ?? 0)), make("span", null, text)));
  const sums = inMoney(amounts);
  return [make("section", { class: "card", "aria-label": "Observed" },
    make("h2", null, "Observed"),
    make("p", { class: "hint" }, `${counted(all, "request")} of routes that are watched alone passed since ${clock(observed.since)}. Nothing of them was refused or stored.`),
    make("ul", { class: "parts" }, parts),
    sums ? make("p", { class: "worth" }, make("b", null, sums), " asked for once more") : null)];
}

const inMoney = (amounts) => Object.entries(amounts).map(([currency, amount]) => (currency === "none" ? money(amount) : `${money(amount)} ${currency}`)).join(" · ");

/// What was asked for once more, of routes that say what requests are worth.
function worth(amounts) {
  const sums = inMoney(amounts);
  return sums ? make("p", { class: "worth" }, make("b", null, sums), " not done a second time") : null;
}

function tiles(figures, samples) {
  const last = samples.at(-1);
  const rate = (sample) => SERIES.reduce((sum, series) => sum + of(sample.verdicts, series), 0) / sample.seconds;
  const took = (spread, none) => (spread ? [millis(spread.p50_ms), `99 of 100 within ${millis(spread.p99_ms)}`] : ["–", none]);
  const doubts = figures.in_doubt;
  const list = [
    ["Requests", last ? `${perSecond(rate(last))} / s` : "–", counted(figures.connections, "open connection"), spark(samples, rate)],
    ["In flight", count(figures.in_flight), make("a", { href: "#/keys?state=running" }, "which keys are at work"), spark(samples, (sample) => sample.in_flight)],
    ["In doubt", doubts ? count(doubts.keys) : "–", doubts?.keys ? make("a", { href: "#/doubts" }, `the oldest for ${span(doubts.oldest_seconds)}`) : "nothing waits for a decision", spark(samples, (sample) => sample.in_doubt, "doubt")],
    ["Run, half within", ...took(last?.executed, "none in the last ten seconds"), spark(samples, (sample) => sample.executed?.p50_ms)],
    ["Replayed, half within", ...took(last?.replayed, "none in the last ten seconds"), spark(samples, (sample) => sample.replayed?.p50_ms)],
    ["Commits, half within", ...took(last?.commit, "none in the last ten seconds"), spark(samples, (sample) => sample.commit?.p50_ms)],
  ];
  return list.map(([name, figure, hint, chart]) =>
    make("section", { class: "card tile", "aria-label": name }, make("h2", null, name), make("p", { class: "figure" }, figure), make("p", { class: "hint" }, hint), chart));
}

function routes(routes) {
  if (!routes.length) return empty("No requests yet.", "");
  const columns = [{ name: "Route" }, ...SERIES.map(({ name, label }) => ({ name: label ?? name, number: true }))];
  const busiest = (route) => SERIES.reduce((sum, series) => sum + of(route.verdicts, series), 0);
  const rows = [...routes].sort((a, b) => busiest(b) - busiest(a));
  return table("Requests by route and verdict", columns, rows.map((route) => [make("span", { class: "mono" }, route.route), ...SERIES.map((series) => count(of(route.verdicts, series)))]));
}
