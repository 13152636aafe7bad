// A change by a person: written down, checked, then made.

import { post, query, signedInAs } from "./api.js";
import { announce, field, make, notice } from "./elements.js";
import { clock } from "./words.js";

const WHO = "hapax-who";
const LOGGED = "Written to the gateway's log.";
const AT_WORK = ["running", "at-work"];

/// What a person may have found out, and what becomes of the key then.
const FOUND = [
  ["completed", "It happened", "Clients are answered with what you write below, now and whenever they ask again."],
  ["failed", "It failed for good", "Clients are answered with the failure you write below."],
  ["released", "It never happened", "The key is given back: the next request with it runs."],
];

/// Asks what became of an operation in doubt.
export function resolve(operation, done) {
  const choices = FOUND.map(([value, name, what]) =>
    make("label", { class: "choice" }, make("input", { type: "radio", name: "as", value, required: true }), make("span", null, make("b", null, name), what)));
  const status = make("input", { type: "number", min: "200", max: "599", inputmode: "numeric" });
  const type = make("input", { type: "text", value: "application/json", spellcheck: "false" });
  const body = make("textarea", { spellcheck: "false" });
  const outcome = make("div", { class: "stack", hidden: true },
    make("div", { class: "pair" }, field("status", "Status", status), field("content-type", "Content type", type)),
    field("body", "Body", body, "Exactly what clients are to be answered."));
  const found = () => choices.map((choice) => choice.querySelector("input")).find((input) => input.checked)?.value;
  const fields = [make("fieldset", null, make("legend", null, "What did you find out?"), choices), outcome];
  return ask({
    title: "Resolve",
    about: operation,
    path: `/operations/${operation.id}/resolve`,
    verb: "Resolve it",
    fields,
    changed: () => {
      const as = found();
      outcome.hidden = as !== "completed" && as !== "failed";
      status.required = !outcome.hidden;
      if (as === "completed" && !(status.value >= 200 && status.value < 400)) status.value = "201";
      if (as === "failed" && !(status.value >= 400)) status.value = "402";
    },
    order: () => {
      const as = found();
      if (as === "released") return { fence: operation.fence, as };
      const headers = type.value ? [{ name: "content-type", value: type.value }] : [];
      return { fence: operation.fence, as, outcome: { status: Number(status.value), headers, body: body.value } };
    },
    done,
  });
}

/// Gives a key back.
export function release(operation, done) {
  return ask({
    title: "Release",
    about: operation,
    path: `/operations/${operation.id}/release`,
    verb: "Release it",
    fields: [make("p", { class: "hint" }, "Right where nothing happened, or where a second effect does no harm.")],
    order: () => ({ fence: operation.fence }),
    done,
  });
}

/// Sends something about the outbox: what `selection` names, to this destination.
export function replay(destination, words, selection, done) {
  return ask({
    title: "Send again",
    about: { scope: `${words}, to ${destination}` },
    path: `/outbox/${encodeURIComponent(destination)}/replay`,
    verb: "Send again",
    fields: [],
    order: () => selection,
    kept: LOGGED,
    done,
  });
}

/// Stops sending, or goes on; there is nothing to check before.
export function pause(destination, paused, done) {
  return ask({
    title: paused ? "Pause" : "Resume",
    about: { scope: `Sending to ${destination}` },
    path: `/outbox/${encodeURIComponent(destination)}/${paused ? "pause" : "resume"}`,
    verb: paused ? "Pause it" : "Resume it",
    fields: [make("p", { class: "hint" }, paused ? "Events wait in the outbox, in order, until it is resumed." : "Events that waited are sent, in order.")],
    order: () => ({}),
    unchecked: true,
    kept: LOGGED,
    done,
  });
}

/// Discards a dead letter, or forgives its message, if it is still the letter that is shown.
export function changeLetter({ name, tenant }, letter, deed, done) {
  const { message_id, content, dead_at } = letter;
  const isForgiving = deed === "forgive";
  return ask({
    title: isForgiving ? "Forgive" : "Discard",
    about: { key: message_id, scope: `put aside by ${name}` },
    path: `/consumers/${encodeURIComponent(name)}/${deed}${query({ tenant })}`,
    verb: isForgiving ? "Forgive it" : "Discard it",
    fields: [make("p", { class: "hint" }, isForgiving ? "Right once what made it fail is mended, and somebody will have it delivered again." : "Right once it is settled otherwise: its payload is gone for good.")],
    order: () => ({ message_id, content, dead_at }),
    kept: LOGGED,
    done,
  });
}

/// Lets keys that are not in the store be run again, if its quarantine is still the one that is shown.
export function liftQuarantine({ since, because }) {
  return ask({
    title: "Lift the quarantine",
    about: { scope: `Since ${clock(since)}: ${because}` },
    path: "/quarantine/lift",
    verb: "Lift it",
    fields: [make("p", { class: "hint" }, "Right once nothing that was lost can happen twice, or where a second effect does no harm.")],
    order: () => ({ since }),
    kept: "Kept in the store, for whoever looks next.",
  });
}

function ask({ title, about, path, verb, fields, changed, order, unchecked, done, kept = "Kept with the key, for whoever looks next." }) {
  const person = signedInAs();
  const who = make("input", { type: "text", required: true, autocomplete: "username", value: person ?? localStorage.getItem(WHO) ?? "", maxlength: "255", readonly: Boolean(person) });
  const why = make("input", { type: "text", required: true, autocomplete: "off", maxlength: "900" });
  const despite = make("input", { type: "checkbox" });
  const risk = make("label", { class: "choice", hidden: true }, despite, make("span", null, make("b", null, "Do it although somebody may be at work on it"), "Their own result then counts no more, but their effect may still happen: make sure first that they are dead."));
  const said = make("div", { "aria-live": "polite" });
  const check = make("button", { type: "submit", class: "main" }, unchecked ? verb : "Check first");
  const cancel = make("button", { type: "button", click: () => dialog.close() }, "Cancel");
  let checked = Boolean(unchecked);

  const unchecking = () => {
    changed?.();
    if (!checked || unchecked) return;
    checked = false;
    check.textContent = "Check first";
    said.replaceChildren();
  };
  const submit = async (event) => {
    event.preventDefault();
    if (!person) localStorage.setItem(WHO, who.value);
    const document = { ...order(), why: why.value };
    if (!person) document.who = who.value;
    if (!unchecked) document.dry_run = !checked;
    if (despite.checked) document.even_if_running = true;
    check.disabled = true;
    try {
      const answer = await post(path, document);
      if (checked) return finish(answer);
      checked = true;
      check.textContent = verb;
      said.replaceChildren(foreseen(answer));
    } catch (refusal) {
      risk.hidden = risk.hidden && !AT_WORK.includes(refusal.code);
      said.replaceChildren(notice("ill", refusal.message));
    } finally {
      check.disabled = false;
      check.focus();
    }
  };
  const finish = (answer) => {
    dialog.close();
    announce(`Done: ${answer.state ?? answer.done}`);
    done?.(answer);
  };
  const heading = make("h2", { id: "change-title" }, title);
  const form = make("form", { submit, input: unchecking }, heading,
    make("p", null, about.key && make("code", null, about.key), about.key && " ", about.scope, about.fence && make("span", { class: "soft" }, `, attempt ${about.fence}`)),
    fields, make("div", { class: "pair" }, field("who", "Who you are", who, person && "As the provider says."), field("why", "Why", why, kept)), risk, said,
    make("div", { class: "buttons" }, cancel, check));
  const dialog = make("dialog", { "aria-labelledby": "change-title", close: () => dialog.remove() }, form);
  document.body.append(dialog);
  dialog.showModal();
  form.querySelector("input:not([hidden]):not([readonly])")?.focus();
}

/// What a dry run said.
function foreseen(answer) {
  const events = (answer.events ?? []).slice(0, 10).map(({ position, topic, key }) => `${position} ${topic}/${key}`);
  const list = events.length ? make("pre", null, events.join("\n")) : null;
  const words = answer.would_be ? `It would be ${answer.would_be.replaceAll("_", " ")}: ${answer.would}.` : `${answer.would}.`;
  return make("div", { class: "notice well" }, make("p", null, make("b", null, "Nothing is changed yet. "), words), list);
}
