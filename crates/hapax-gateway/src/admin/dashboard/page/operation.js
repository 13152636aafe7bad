// One key: what is stored, what happened, what was asked for, what people did, and what can be done.

import { get } from "./api.js";
import { release, resolve } from "./change.js";
import { button, card, chip, facts, head, make, notice, table } from "./elements.js";
import { ANSWERS, DOUBTS, RECOVERIES, bytes, clock, count, secondsBetween, span } from "./words.js";

export const operation = {
  title: "A key",
  isRenewed: true,
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
        ...contents(shown, context),
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
    make("h2", null, "The kept request"),
    request(id, record, context),
    ...(shown.steps?.length ? [make("h2", null, "Finished steps"), theSteps(id, shown.steps)] : []),
    actions(record, context, context.refresh, make("a", { class: "more", href: `#/key/${id}` }, "Everything about this key")),
  ];
}

const load = (id) => Promise.all([get(`/operations/${encodeURIComponent(id)}`), get(`/operations/${encodeURIComponent(id)}/explanation`)]);

function advice({ because, advice, answer, another }) {
  return make("div", { class: "stack" },
    make("p", { class: "advice" }, `${because} ${advice}`),
    make("p", { class: "hint" }, `The same request again ${ANSWERS[answer] ?? answer}. Another request under this key ${ANSWERS[another] ?? another}.`));
}

/// What its client sent, as far as it is kept, and what its parts came to.
function contents(shown, context) {
  const { record, steps } = shown;
  return [record && card("The kept request", request(shown.id, record, context)), steps?.length > 0 && card("Finished steps", theSteps(shown.id, steps))];
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
    ["Owner", record.owner && make("span", { class: "mono" }, record.owner)],
    ["If its owner vanishes", RECOVERIES[record.recovery] ?? record.recovery],
    ["First claimed", clock(record.created_at)],
    ["Lease until", record.lease_until && until(record.lease_until)],
    ["Picked up by", record.pick_up_by && until(record.pick_up_by)],
    ["Expires", record.state === "in_doubt" ? "not while it is in doubt" : until(record.expires_at)],
    ["Id", make("span", { class: "mono" }, record.id)],
  ]);
}

function timeline({ timeline, now }) {
  return make("ol", { class: "timeline" }, timeline.map(({ at, what, by }) => {
    const isAhead = at > now;
    const kind = isAhead ? "ahead" : by === "record" ? false : by;
    return make("li", { class: kind, "data-key": `${at} ${by}` }, make("time", { datetime: at }, clock(at), isAhead ? `, in ${span(secondsBetween(now, at))}` : ""), what);
  }));
}

function notes(notes) {
  return make("ol", { class: "timeline" }, notes.map(({ at, who, why, deed, phase, fence }) =>
    make("li", { class: "person" }, make("time", { datetime: at }, clock(at)), make("b", null, who), ` ${deed.replaceAll("_", " ")}, attempt ${fence}, ${phase}: `, make("q", null, why))));
}

function outcome(id, { status, headers, body_bytes: length, body_kept: isKept, encrypted }) {
  const kept = encrypted ? ", encrypted, and this gateway has no key for it" : isKept ? "" : ", not kept";
  return make("div", { class: "stack" },
    facts([["Status", String(status)], ...headers.map(({ name, value }) => [name, make("span", { class: "mono" }, value)]), ["Body", `${bytes(length)}${kept}`]]),
    isKept && !encrypted && length > 0 && opener(`Show the body (${count(length)} bytes)`, "Body", async () => text(await contentsOf(id, ({ record }) => record?.outcome))));
}

/// What was asked for. It is kept where somebody else could finish it: for probes, for later, or to be sent again.
function request(id, { request_kept: isKept, request: kept }, context) {
  if (!isKept) return make("p", { class: "hint" }, "It is not kept: only the fingerprint of what was asked for is stored, which tells requests apart and not what they were. Its client, or the upstream's log, knows.");
  if (!kept) return make("p", { class: "hint" }, "It is kept, and cannot be read here: it is encrypted and this gateway has no key for it, or a newer version wrote it.");
  const isShown = context.mayChange() && kept.body_bytes > 0;
  return make("div", { class: "stack" },
    facts([
      ["Request", make("span", { class: "mono" }, `${kept.method} ${kept.path}`)],
      ["Body", `${bytes(kept.body_bytes)}${context.mayChange() ? "" : "; what it says is for whoever may change something"}`],
      ["SHA-256", kept.body_sha256 && make("span", { class: "mono" }, kept.body_sha256)]]),
    isShown && opener("Show what was sent", "Request body", async () => text(await contentsOf(id, ({ record }) => record?.request))));
}

function theSteps(id, steps) {
  const columns = [{ name: "Step" }, { name: "Name" }, { name: "Kept" }, { name: "Result", number: true }];
  const rows = steps.map(({ number, name, at, result_bytes: length }) => [String(number), make("span", { class: "mono" }, name), clock(at), bytes(length)]);
  const results = async () => {
    const { steps } = await get(`/operations/${encodeURIComponent(id)}?body=true`);
    return steps.map(({ number, name, result, result_base64: base64 }) => `${number} ${name}: ${result ?? (base64 ? `in base64: ${base64}` : "empty")}`).join("\n");
  };
  return make("div", { class: "stack" }, table("Finished steps", columns, rows), opener("Show the results", "Results", results));
}

const contentsOf = async (id, part) => part(await get(`/operations/${encodeURIComponent(id)}?body=true`));
const text = (part) => (part ? part.body ?? (part.body_base64 ? `in base64:\n${part.body_base64}` : "empty") : "It is not kept any more.");

/// A button, and below it what it shows.
function opener(label, name, load) {
  const open = async ({ currentTarget }) => {
    const place = currentTarget.closest(".opener").querySelector(".opened");
    try {
      place.replaceChildren(make("pre", { tabindex: "0", "aria-label": name }, await load()));
    } catch (error) {
      place.replaceChildren(notice("ill", error.message));
    }
  };
  return make("div", { class: "stack opener" }, make("div", { class: "buttons" }, button(label, "", open)), make("div", { class: "opened", "aria-live": "polite", "data-own": "" }));
}
