// Keys nobody knows the outcome of, with everything needed to decide.

import { get, query } from "./api.js";
import { decision } from "./operation.js";
import { button, empty, head, make, notice } from "./elements.js";
import { clock, secondsBetween, span } from "./words.js";

const PAGE = 100;
/// So few are opened at once.
const OPENED_MAX = 2;

export const doubts = {
  title: "In doubt",
  async show(main, context) {
    const list = make("ul", { class: "doubts" });
    const more = make("div");
    const load = async (after) => {
      const { operations, next } = await get(`/operations${query({ state: "in_doubt", limit: PAGE, after })}`);
      const now = context.figures?.at ?? new Date().toISOString();
      const oldestFirst = [...operations].sort((a, b) => (a.changed_at ?? "").localeCompare(b.changed_at ?? ""));
      list.append(...oldestFirst.map((operation) => item(operation, now, context, operations.length <= OPENED_MAX)));
      more.replaceChildren(...(next ? [button("Show more", "", () => load(next))] : []));
      return operations.length;
    };
    const first = await load(null);
    const hint = first ? "They were sent, and nobody knows whether they took effect. They are never sent again by themselves." : "";
    main.replaceChildren(head("In doubt", hint), first ? make("div", { class: "stack" }, list, more) : empty("Nothing is in doubt.", "Every key that was sent has an outcome."));
    let known = context.figures?.in_doubt?.keys;
    return {
      figures: ({ in_doubt: doubts }) => {
        const isNews = doubts && known !== undefined && doubts.keys > known;
        known = doubts?.keys ?? known;
        if (isNews && !main.querySelector(".news")) {
          main.querySelector(".head").after(make("div", { class: "news" }, notice("doubt", "More keys are in doubt. ", button("Show them", "", context.refresh))));
        }
      },
    };
  },
};

function item(operation, now, context, open) {
  if (operation.unreadable) {
    return make("li", { class: "card" }, make("div", { class: "decide" }, notice("ill", `${operation.id} cannot be read: ${operation.unreadable}`)));
  }
  const inside = make("div", { class: "decide" }, make("p", { class: "hint" }, "Loading…"));
  const summary = make("summary", null,
    make("span", { class: "name mono" }, operation.key),
    make("span", { class: "age", title: clock(operation.changed_at) }, span(secondsBetween(operation.changed_at, now))),
    make("span", { class: "where" }, `${operation.scope} · ${operation.tenant} · attempt ${operation.fence}`));
  const details = make("details", { toggle: () => details.open && fill() }, summary, inside);
  let filled = false;
  const fill = async () => {
    if (filled) return;
    filled = true;
    try {
      inside.replaceChildren(...(await decision(operation.id, context)));
    } catch (error) {
      filled = false;
      inside.replaceChildren(notice("ill", error.message));
    }
  };
  if (open) details.open = true;
  return make("li", { class: "card" }, details);
}
