// Charts of the last hour, with the same figures in words and as a table.

import { counted, instant, timeOfDay } from "./words.js";
import { drawn, make } from "./elements.js";

const WIDTH = 720;
const HEIGHT = 160;
/// The shortest time that is shown: a gateway that was just started fills some of it.
const SPAN_SECONDS_MIN = 600;

/// What is drawn, from the bottom up, and which verdicts it stands for.
export const SERIES = [
  { name: "executed", verdicts: ["executed", "taken_over", "queued"] },
  { name: "replayed", verdicts: ["replayed"] },
  { name: "busy", verdicts: ["busy"] },
  { name: "mismatch", verdicts: ["mismatch", "gone"] },
  { name: "doubt", label: "in doubt or unanswered", verdicts: ["in_doubt", "unanswered", "undecided"] },
  { name: "refused", verdicts: ["refused", "unhandled"] },
  { name: "passed", label: "passed unprotected", verdicts: ["passed", "passed_keyless", "unprotected", "page"] },
];

/// The same for keys: the states that they entered here.
export const ENTERED = [
  { name: "executed", label: "began", verdicts: ["running"] },
  { name: "replayed", label: "completed", verdicts: ["completed"] },
  { name: "mismatch", label: "failed", verdicts: ["failed"] },
  { name: "refused", label: "released", verdicts: ["released"] },
  { name: "doubt", label: "left in doubt", verdicts: ["in_doubt"] },
];

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
export const of = (verdicts, { verdicts: words }) => sum(words.map((word) => verdicts[word] ?? 0));

/// From when on samples are shown.
function window(samples) {
  const end = instant(samples.at(-1).at).getTime();
  const first = instant(samples[0].at).getTime() - samples[0].seconds * 1000;
  const start = Math.min(first, end - SPAN_SECONDS_MIN * 1000);
  return { start, x: (at) => ((instant(at) - start) / (end - start)) * WIDTH, width: (seconds) => Math.max(0.6, ((seconds * 1000) / (end - start)) * WIDTH - 0.5) };
}

/// Requests by verdict, as bars on top of each other.
export const verdictChart = (samples) => bars("Requests by verdict", "no requests", samples, SERIES, (sample) => sample.verdicts);

/// Keys by the state that they entered.
export const stateChart = (samples) => bars("Keys by the state they entered", "no keys", samples, ENTERED, (sample) => sample.entered ?? {});

function bars(title, none, samples, all, counts) {
  if (!samples.length) return make("p", { class: "hint" }, "The first sample is taken ten seconds after the start.");
  const { start, x, width } = window(samples);
  const rate = (sample) => sum(all.map((series) => of(counts(sample), series))) / sample.seconds;
  const most = Math.max(1, ...samples.map(rate));
  const drawings = samples.flatMap((sample) => {
    let below = 0;
    return all.flatMap((series) => {
      const height = (of(counts(sample), series) / sample.seconds / most) * HEIGHT;
      if (!height) return [];
      below += height;
      const right = x(sample.at);
      const wide = width(sample.seconds);
      return [drawn("rect", { class: series.name, x: right - wide, y: HEIGHT - below, width: wide, height })];
    });
  });
  const totals = all.map((series) => ({ ...series, total: sum(samples.map((sample) => of(counts(sample), series))) }));
  const there = totals.filter(({ total }) => total > 0);
  const said = there.map(({ name, label, total }) => `${total} ${label ?? name}`).join(", ") || none;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title} since ${timeOfDay(new Date(start).toISOString())}: ${said}` }, drawings);
  const top = make("div", { class: "scale" }, make("span", null, `${most >= 10 ? Math.round(most) : most.toFixed(1)} / s`), make("span", null, ""));
  const foot = make("div", { class: "scale" }, make("span", null, timeOfDay(new Date(start).toISOString())), make("span", null, timeOfDay(samples.at(-1).at)));
  const legend = make("ul", { class: "legend" }, there.map(({ name, label, total }) => make("li", null, make("i", { class: name, "aria-hidden": "true" }), `${label ?? name} `, make("b", null, total.toLocaleString("en")))));
  return make("div", { class: "chart" }, top, svg, foot, legend, asTable(title, samples, there, counts));
}

/// The same by the minute.
function asTable(title, samples, series, counts) {
  const minutes = new Map();
  for (const sample of samples) {
    const minute = timeOfDay(sample.at).slice(0, 5);
    const row = minutes.get(minute) ?? series.map(() => 0);
    minutes.set(minute, row.map((value, at) => value + of(counts(sample), series[at])));
  }
  const head = make("tr", null, make("th", { scope: "col" }, "Minute"), series.map(({ name, label }) => make("th", { scope: "col", class: "n" }, label ?? name)));
  const rows = [...minutes].reverse().map(([minute, row]) => make("tr", null, make("th", { scope: "row" }, minute), row.map((value) => make("td", { class: "n" }, value.toLocaleString("en")))));
  const table = make("table", null, make("thead", null, head), make("tbody", null, rows));
  const scrolls = make("div", { class: "table", role: "group", tabindex: "0", "aria-label": `${title}, by the minute` }, table);
  return make("details", { class: "more" }, make("summary", null, `The same as a table, ${counted(minutes.size, "minute")}`), scrolls);
}

/// One figure over time; gaps where there is none.
export function spark(samples, value, kind = "") {
  const shown = samples.filter((sample) => value(sample) !== null && value(sample) !== undefined);
  const svg = drawn("svg", { class: `spark ${kind}`, viewBox: `0 0 ${WIDTH} 40`, preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(drawn("line", { class: "base", x1: 0, x2: WIDTH, y1: 39.5, y2: 39.5 }));
  if (!shown.length) return svg;
  const { x } = window(samples);
  const most = Math.max(...shown.map(value)) || 1;
  const points = shown.map((sample) => `${x(sample.at).toFixed(1)},${(38 - (value(sample) / most) * 36).toFixed(1)}`);
  svg.append(drawn("path", { class: "area", d: `M${x(shown[0].at).toFixed(1)},40 L${points.join(" L")} L${x(shown.at(-1).at).toFixed(1)},40 Z` }));
  svg.append(drawn("path", { class: "stroke", d: `M${points.join(" L")}` }));
  return svg;
}
