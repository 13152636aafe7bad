// Keys nobody knows the outcome of, with everything needed to decide.

import { get, query } from "./api.js";
import { decision } from "./operation.js";
import { button, empty, head, make, notice } from "./elements.js";
import { renew } from "./renew.js";
import { clock, count, secondsBetween, span } from "./words.js";

const PAGE = 100;
const PAGE_MAX = 1000;
/// So few are opened at once.
const OPENED_MAX = 2;

export const doubts = {
  title: "In doubt",
  async show(main, context) {
    const list = make("ul", { class: "doubts" });
    const more = make("div");
    let wanted = PAGE;
    const load = async () => {
      const listing = await oldest(wanted);
      const { operations } = listing;
      const now = context.figures?.at ?? new Date().toISOString();
      // Those that come later are not opened while somebody reads.
      const isOpen = wanted === PAGE && !list.hasChildNodes() && operations.length <= OPENED_MAX;
      const fresh = make("ul", null, operations.map((operation) => item(operation, now, context, isOpen)));
      renew(list, fresh);
      renew(more, make("div", null, ...below(listing)));
      return operations.length;
    };
    const below = ({ next, incomplete }) => [
      incomplete && make("p", { class: "hint" }, `There are more than ${count(incomplete)}: only these were put in order.`),
      next && wanted < PAGE_MAX && button("Show more", "", () => ((wanted = Math.min(wanted + PAGE, PAGE_MAX)), load())),
      next && wanted >= PAGE_MAX && make("p", { class: "hint" }, "The rest is shown once these are decided, or by hapax keys list --state in_doubt --order age.")].filter(Boolean);
    const first = await load();
    const hint = first ? "They were sent, and nobody knows whether they took effect; the oldest come first. They are never sent again by themselves." : "";
    main.replaceChildren(head("In doubt", hint), first ? make("div", { class: "stack" }, list, more) : empty("Nothing is in doubt.", "Every key that was sent has an outcome."));
    // Those that come and go change the view from one kind to the other.
    const again = async () => ((await load()) > 0) === first > 0 || context.refresh();
    return { renew: again };
  },
};

const oldest = (limit) => get(`/operations${query({ state: "in_doubt", order: "oldest", limit })}`);

function item(operation, now, context, open) {
  if (operation.unreadable) {
    return make("li", { class: "card", "data-key": operation.id }, make("div", { class: "decide" }, notice("ill", `${operation.id} cannot be read: ${operation.unreadable}`)));
  }
  const inside = make("div", { class: "decide", "data-own": "" }, make("p", { class: "hint" }, "Loading…"));
  const summary = make("summary", null,
    make("span", { class: "name mono" }, operation.key),
    make("span", { class: "age", title: clock(operation.changed_at) }, span(secondsBetween(operation.changed_at, now))),
    make("span", { class: "where" }, `${operation.scope} · ${operation.tenant} · attempt ${operation.fence}`));
  const fill = async ({ currentTarget }) => {
    const place = currentTarget.querySelector(".decide");
    if (!currentTarget.open || place.dataset.own === "filled") return;
    place.dataset.own = "filled";
    try {
      place.replaceChildren(...(await decision(operation.id, context)));
    } catch (error) {
      place.dataset.own = "";
      place.replaceChildren(notice("ill", error.message));
    }
  };
  const details = make("details", { toggle: fill }, summary, inside);
  if (open) details.open = true;
  return make("li", { class: "card", "data-key": `${operation.id} ${operation.fence}` }, details);
}
