// Who consumes messages: what is tried again, what waits behind a gap, what was put aside.

import { get, query } from "./api.js";
import { changeLetter } from "./change.js";
import { button, card, empty, facts, head, make, notice, table } from "./elements.js";
import { bytes, clock, count, counted, span } from "./words.js";

const PAGE = 50;
/// The tenant of whoever names none.
const PLAIN = "messages";

/// What a delivery meets, if one comes.
const DELIVERIES = {
  is_first: "is acted on",
  failed: "is acknowledged: it failed",
  duplicate: "is acknowledged: it was acted on, or is held",
  conflict: "is put aside again: its id was used for other content",
};

export const consumers = {
  title: "Consumers",
  isRenewed: true,
  async show(main, context, { query: { after, after_tenant: tenant } }) {
    const hint = "Who acts on messages once, by what is remembered in this store. Counts end at ten thousand.";
    let listing;
    try {
      listing = await get(`/consumers${query({ limit: PAGE, after, tenant: after && tenant })}`);
    } catch (error) {
      if (error.code !== "no-inbox") throw error;
      return void main.replaceChildren(head("Consumers"), empty("There is no inbox.", error.message));
    }
    const columns = [{ name: "Consumer" }, { name: "Dead letters", number: true }, { name: "Tried again", number: true }, { name: "Held", number: true }, { name: "Remembered", number: true }, { name: "For", number: true }];
    const rows = listing.consumers.map((one) => [make("a", { href: address(one) }, named(one)), upTo(one.dead), upTo(one.retried), upTo(one.held), upTo(one.remembered), span(one.retention_seconds)]);
    const list = rows.length ? card("", table("Consumers", columns, rows)) : empty("Nobody has consumed yet.", "A consumer is known once it runs on this store, or calls hapax.first_delivery.");
    const { next } = listing;
    const more = next && make("div", { class: "buttons" }, make("a", { class: "more", href: `#/consumers${query({ after: next.name, after_tenant: next.tenant })}` }, "Next page"));
    main.replaceChildren(head("Consumers", hint), list, more ?? "");
  },
};

export const consumer = {
  title: "A consumer",
  isRenewed: true,
  async show(main, context, { id: name, query: { tenant = PLAIN } }) {
    const path = `/consumers/${encodeURIComponent(name)}`;
    const of = (part, rest) => get(`${path}${part}${query({ ...rest, tenant })}`);
    const page = (part) => of(part, { limit: PAGE });
    const [shown, dead, retried, held] = await Promise.all([of(""), page("/dead"), page("/retried"), page("/held")]);
    const words = `${upTo(shown.dead)} dead, ${upTo(shown.retried)} tried again, ${upTo(shown.held)} held. ${upTo(shown.remembered)} remembered, each for ${span(shown.retention_seconds)}.`;
    main.replaceChildren(
      make("p", { class: "hint" }, make("a", { href: "#/consumers" }, "Consumers")),
      head(named(shown), words),
      make("div", { class: "stack" },
        pages("Dead letters", dead, (listing) => letters(shown, listing, of, context), ({ message_id: after, content }) => of("/dead", { limit: PAGE, after, after_content: content })),
        pages("Tried again", retried, attempts, (after) => of("/retried", { limit: PAGE, after })),
        pages("Held behind a gap", held, gaps, (after) => of("/held", { limit: PAGE, after })),
        shown.keeps_offsets && card("Partitions", partitions(shown))));
  },
};

const named = ({ name, tenant }) => (tenant === PLAIN ? name : `${name} of ${tenant}`);
const address = ({ name, tenant }) => `#/consumer/${encodeURIComponent(name)}${query({ tenant: tenant === PLAIN ? null : tenant })}`;
const upTo = ({ count: number, more }) => (more ? `${count(number)} or more` : count(number));
const mono = (text) => make("span", { class: "mono" }, text);

/// A card whose rows come page by page.
function pages(title, first, rows, load) {
  const turn = (place, listing) => {
    const { next } = listing;
    const further = async ({ currentTarget }) => {
      const here = currentTarget.closest(".paged");
      // Whoever has turned the page stays on it.
      here.dataset.own = "";
      try {
        turn(here, await load(next));
        here.querySelector("button, a, [tabindex]")?.focus();
      } catch (error) {
        here.append(notice("ill", error.message));
      }
    };
    place.replaceChildren(rows(listing), ...(next ? [make("div", { class: "buttons" }, button(`More of ${title.toLowerCase()}`, "", further))] : []));
    return place;
  };
  return card(title, turn(make("div", { class: "stack paged" }), first));
}

function letters(shown, { letters, next }, of, context) {
  if (!letters.length && !next) return empty("There is no dead letter.", "Messages that could not be acted on are put aside here, unless their consumer sends them to a sink.");
  const open = async ({ currentTarget }, { message_id: id, content }) => {
    const place = currentTarget.closest(".letters").querySelector(".opened");
    try {
      place.replaceChildren(letter(await of(`/dead/${encodeURIComponent(id)}`, { content })));
    } catch (error) {
      place.replaceChildren(notice("ill", error.message));
    }
  };
  const columns = [{ name: "Message" }, { name: "Why" }, { name: "Put aside" }, { name: "A delivery of it now" }, { name: "Size", number: true }, { name: "What to do" }];
  const rows = letters.map((one) => [
    mono(one.message_id), make("span", null, make("b", null, one.reason), ` ${one.detail}`), clock(one.dead_at), DELIVERIES[one.next_delivery] ?? one.next_delivery, bytes(one.payload_bytes),
    make("div", { class: "buttons" }, button("Show", "", (event) => open(event, one)),
      context.mayChange() && one.next_delivery === "failed" && button("Forgive…", "", () => changeLetter(shown, one, "forgive", context.refresh)),
      context.mayChange() && button("Discard…", "", () => changeLetter(shown, one, "discard", context.refresh)))]);
  const opened = make("div", { class: "stack opened", "aria-live": "polite", "data-own": "" });
  return make("div", { class: "stack letters" }, table("Dead letters", columns, rows, letters.map((one) => `${one.message_id} ${one.content}`)), opened);
}

function letter(one) {
  const shown = one.encrypted ? "encrypted" : one.payload ?? (one.payload_base64 ? `in base64:\n${one.payload_base64}` : "");
  const cut = !one.encrypted && one.shown_bytes < one.payload_bytes && `, the first ${count(one.shown_bytes)} of them below`;
  const headers = (one.headers ?? []).map(({ name, value }) => `${name}: ${value}`).join("\n");
  return make("section", { class: "stack", "aria-label": `Dead letter ${one.message_id}` },
    facts([
      ["Message", mono(one.message_id)], ["Why", `${one.reason}: ${one.detail}`], ["From", mono(one.source)], ["Key", one.key !== null && mono(one.key)],
      ["Its key has come to", one.come_to !== null && `version ${one.come_to}`], ["Digest", mono(one.content)], ["Payload", make("span", null, counted(one.payload_bytes, "byte"), cut)],
      ["Headers", one.headers ? headers && make("pre", { tabindex: "0", "aria-label": "Headers" }, headers) : one.encrypted ? "encrypted" : "cannot be read"]].filter(([, value]) => value !== false)),
    make("pre", { tabindex: "0", "aria-label": "Payload" }, shown || "empty"));
}

function attempts({ messages, next }) {
  if (!messages.length) return empty(next ? "All on this page were acted on since." : "No message is being tried again.", "");
  const columns = [{ name: "Message" }, { name: "Attempts that failed", number: true }, { name: "The last one" }];
  return table("Tried again", columns, messages.map((one) => [mono(one.message_id), count(one.attempts), clock(one.failed_at)]));
}

function gaps({ keys }) {
  if (!keys.length) return empty("No message waits for another.", "");
  const columns = [{ name: "Key" }, { name: "Come to", number: true }, { name: "Lowest held", number: true }, { name: "Held", number: true }, { name: "Since" }];
  return table("Held behind a gap", columns, keys.map((one) => [mono(one.key), one.come_to === null ? "nothing" : String(one.come_to), String(one.lowest), upTo(one.held), clock(one.since)]));
}

function partitions({ partitions, more_partitions: more }) {
  const columns = [{ name: "Partition" }, { name: "Next offset", number: true }, { name: "Times taken", number: true }];
  const rows = partitions.map((one) => [mono(`${one.source}/${one.partition}`), one.next === null ? "" : String(one.next), count(one.fence)]);
  return make("div", { class: "stack" }, table("Partitions", columns, rows), more && make("p", { class: "hint" }, "The first thousand."));
}
