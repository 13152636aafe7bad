// One key: what is stored, what happened, what people did, and what can be done.

import { get } from "./api.js";
import { release, resolve } from "./change.js";
import { button, card, chip, facts, head, make } from "./elements.js";
import { ANSWERS, DOUBTS, RECOVERIES, bytes, clock, count, secondsBetween, span } from "./words.js";

export const operation = {
  title: "A key",
  async show(main, context, { id }) {
    const [shown, explanation] = await load(id);
    const { record } = shown;
    const title = record ? record.key : `Operation ${shown.id}`;
    main.replaceChildren(
      make("p", { class: "hint" }, make("a", { href: "#/keys" }, "Keys")),
      head(title, null, record ? chip(record.state) : make("span", { class: "hint" }, "Nothing is stored; only notes are left.")),
      make("div", { class: "stack" },
        make("section", { class: "card", "aria-label": "What to do" }, advice(explanation), actions(record, context, context.refresh)),
        make("div", { class: "sides" }, card("Timeline", timeline(shown)), record && card("Record", recordFacts(record, shown.now))),
        record?.outcome && card("Stored answer", outcome(shown.id, record.outcome)),
        shown.notes.length > 0 && card("What people did", notes(shown.notes))),
    );
  },
};

/// What a queue shows of a key, to decide about it.
export async function decision(id, context) {
  const [shown, explanation] = await load(id);
  const { record } = shown;
  if (!record) return [advice(explanation)];
  return [
    advice(explanation),
    make("div", { class: "sides" }, recordFacts(record, shown.now), timeline(shown)),
    actions(record, context, context.refresh, make("a", { class: "more", href: `#/key/${id}` }, "Everything about this key")),
  ];
}

const load = (id) => Promise.all([get(`/operations/${encodeURIComponent(id)}`), get(`/operations/${encodeURIComponent(id)}/explanation`)]);

function advice({ because, advice, answer, another }) {
  return make("div", { class: "stack" },
    make("p", { class: "advice" }, `${because} ${advice}`),
    make("p", { class: "hint" }, `The same request again ${ANSWERS[answer] ?? answer}. Another request under this key ${ANSWERS[another] ?? another}.`));
}

function actions(record, context, done, more) {
  const canChange = record && ["in_doubt", "running", "pending"].includes(record.state);
  if (canChange && !context.mayChange()) return make("p", { class: "hint" }, "You may look; changes need the token of admin_token, or a group of operate. ", more);
  const buttons = canChange ? [button("Resolve…", "main", () => resolve(record, done)), button("Release…", "", () => release(record, done))] : [];
  return buttons.length || more ? make("div", { class: "buttons row" }, buttons, more) : null;
}

function recordFacts(record, now) {
  const until = (at) => (at > now ? `${clock(at)}, in ${span(secondsBetween(now, at))}` : clock(at));
  return facts([
    ["State", chip(record.state)],
    ["Why in doubt", record.doubt && (DOUBTS[record.doubt] ?? record.doubt)],
    ["Since", `${clock(record.changed_at)}, ${span(secondsBetween(record.changed_at, now))} ago`],
    ["Scope", make("span", { class: "mono" }, record.scope)],
    ["Tenant", make("span", { class: "mono" }, record.tenant)],
    ["Key", make("span", { class: "mono" }, record.key)],
    ["Attempt", `${record.fence} (its fence)`],
    ["If its owner vanishes", RECOVERIES[record.recovery] ?? record.recovery],
    ["First claimed", clock(record.created_at)],
    ["Lease until", record.lease_until && until(record.lease_until)],
    ["Picked up by", record.pick_up_by && until(record.pick_up_by)],
    ["Expires", record.state === "in_doubt" ? "not while it is in doubt" : until(record.expires_at)],
    ["Request", record.request_kept ? "kept, so that somebody else could finish it" : "not kept"],
    ["Id", make("span", { class: "mono" }, record.id)],
  ]);
}

function timeline({ timeline, notes, now }) {
  const byPeople = new Set(notes.map(({ at }) => at));
  return make("ol", { class: "timeline" }, timeline.map(({ at, what }) => {
    const isAhead = at > now;
    const kind = byPeople.has(at) ? "person" : isAhead ? "ahead" : false;
    return make("li", { class: kind }, make("time", { datetime: at }, clock(at), isAhead ? `, in ${span(secondsBetween(now, at))}` : ""), what);
  }));
}

function notes(notes) {
  return make("ol", { class: "timeline" }, notes.map(({ at, who, why, deed, phase, fence }) =>
    make("li", { class: "person" }, make("time", { datetime: at }, clock(at)), make("b", null, who), ` ${deed.replaceAll("_", " ")}, attempt ${fence}, ${phase}: `, make("q", null, why))));
}

function outcome(id, { status, headers, body_bytes: length, body_kept: isKept }) {
  const place = make("div");
  const show = async () => {
    const { record } = await get(`/operations/${encodeURIComponent(id)}?body=true`);
    const { body, body_base64: base64 } = record.outcome;
    place.replaceChildren(make("pre", { tabindex: "0", "aria-label": "Body" }, body ?? (base64 ? `in base64:\n${base64}` : "empty")));
  };
  return make("div", { class: "stack" },
    facts([["Status", String(status)], ...headers.map(({ name, value }) => [name, make("span", { class: "mono" }, value)]), ["Body", `${bytes(length)}${isKept ? "" : ", not kept"}`]]),
    isKept && length > 0 && make("div", { class: "buttons" }, button(`Show the body (${count(length)} bytes)`, "", show)),
    place);
}
