// Events on their way out.

import { get, query } from "./api.js";
import { pause, replay } from "./change.js";
import { button, card, empty, head, make, table } from "./elements.js";
import { clock, count, counted, span } from "./words.js";

const PAGE = 50;

export const outbox = {
  title: "Outbox",
  isRenewed: true,
  async show(main) {
    let destinations;
    try {
      ({ destinations } = await get("/outbox"));
    } catch (error) {
      if (error.code !== "no-outbox") throw error;
      return void main.replaceChildren(head("Outbox"), empty("There is no outbox.", error.message));
    }
    const columns = [{ name: "Destination" }, { name: "Sending" }, { name: "Topics" }, { name: "Behind", number: true }, { name: "Oldest", number: true }, { name: "Parked", number: true }, { name: "Relays", number: true }];
    const rows = destinations.map((one) => [
      make("a", { href: `#/destination/${encodeURIComponent(one.name)}` }, one.name), sending(one), make("span", { class: "mono" }, one.topics.join(", ")),
      count(one.behind), one.behind ? span(one.behind_seconds) : "", count(one.parked), count(one.relays)]);
    const list = rows.length ? card("", table("Destinations", columns, rows, destinations.map(({ name }) => name))) : empty("There is no destination.", "One is registered when a relay first runs: [[relay]] in the configuration, or hapax relay.");
    main.replaceChildren(head("Outbox", "Events that were written with their effect, and where they are sent."), list);
  },
};

export const destination = {
  title: "A destination",
  isRenewed: true,
  async show(main, context, { id: name }) {
    const path = `/outbox/${encodeURIComponent(name)}`;
    const [lag, listing] = await Promise.all([get(path), get(`${path}/parked${query({ limit: PAGE })}`)]);
    const isPaused = lag.paused;
    const change = context.mayChange() && button(isPaused ? "Resume…" : "Pause…", "", () => pause(name, !isPaused, context.refresh));
    const words = lag.behind ? `${counted(lag.behind, "event")} behind, the oldest for ${span(lag.behind_seconds)}` : "Everything is sent";
    main.replaceChildren(
      make("p", { class: "hint" }, make("a", { href: "#/outbox" }, "Outbox")),
      head(name, `${words}; ${count(lag.parked)} parked; ${counted(lag.relays, "relay")}. ${sending(lag)}.`, change),
      make("div", { class: "stack" }, parked(name, listing, context), card("Lanes", lanes(lag.lanes))));
  },
};

const sending = ({ paused, relays }) => (paused ? "Paused by somebody" : relays ? "Sending" : "No relay serves it");

function parked(name, { parked, next }, context) {
  const title = "Parked events";
  if (!parked.length) return card(title, empty("Nothing is parked.", "Events that a destination refuses are put aside here."));
  const columns = [{ name: "Position" }, { name: "Event" }, { name: "Why" }, { name: "Parked" }, { name: "Tries", number: true }, { name: "Sending" }];
  const again = (words, selection) => button("Send again…", "", () => replay(name, words, selection, context.refresh));
  const rows = parked.map((event) => [
    String(event.position), make("span", { class: "mono" }, `${event.topic}/${event.key}`), make("span", null, event.reason, event.holds_key && make("span", { class: "hint" }, " Later events of its key wait behind it.")),
    `${clock(event.parked_at)}, ${span(event.parked_seconds)} ago`, String(event.attempts),
    event.replaying ? "to be sent again" : context.mayChange() ? again(`Event ${event.position}`, { position: event.position }) : ""]);
  const all = context.mayChange() && parked.some(({ replaying }) => !replaying) && make("div", { class: "buttons" }, button("Send all again…", "", () => replay(name, "All parked events", { all: true }, context.refresh)));
  const more = next !== null && make("p", { class: "hint" }, `There are more: hapax outbox parked ${name} --after ${next}`);
  return card(title, table(title, columns, rows, parked.map(({ position }) => position)), more, all);
}

function lanes(lanes) {
  if (!lanes.length) return empty("No lane has a relay or a backlog.", "");
  const columns = [{ name: "Lane" }, { name: "Relay" }, { name: "Done up to", number: true }, { name: "Behind", number: true }, { name: "Oldest", number: true }];
  const rows = lanes.map((lane) => [String(lane.lane), make("span", { class: "mono" }, lane.owner ?? "nobody"), count(lane.low), count(lane.behind), lane.oldest ? clock(lane.oldest) : ""]);
  const busy = lanes.filter(({ behind }) => behind > 0).length;
  return make("details", { class: "more" }, make("summary", null, `${counted(lanes.length, "lane")}, ${count(busy)} with a backlog`), table("Lanes", columns, rows));
}
