// Looking for keys.

import { get, query } from "./api.js";
import { button, card, chip, empty, field, head, make, notice, table } from "./elements.js";
import { STATES, clock } from "./words.js";

const PAGE = 50;
const ID = /^[0-9a-f]{32}(-[0-9a-f]{32})?$/i;

export const keys = {
  title: "Keys",
  async show(main, context, { query: wanted }) {
    const inputs = {
      key: make("input", { type: "search", value: wanted.key ?? "", spellcheck: "false", autocomplete: "off" }),
      tenant: make("input", { type: "text", value: wanted.tenant ?? "", spellcheck: "false", autocomplete: "off" }),
      scope: make("input", { type: "text", value: wanted.scope ?? "", spellcheck: "false", autocomplete: "off" }),
      state: make("select", null, make("option", { value: "" }, "any"), STATES.map((state) => make("option", { value: state, selected: state === wanted.state }, state.replaceAll("_", " ")))),
    };
    const submit = (event) => {
      event.preventDefault();
      const values = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()]));
      const hash = ID.test(values.key) ? `#/key/${values.key}` : `#/keys${query(values)}`;
      if (location.hash === hash) context.refresh();
      else context.go(hash);
    };
    const form = make("form", { class: "search", role: "search", submit },
      field("key", "Key, or an id", inputs.key), field("tenant", "Tenant", inputs.tenant), field("scope", "Scope", inputs.scope), field("state", "State", inputs.state),
      make("button", { class: "main", type: "submit" }, "Search"));
    const results = make("div", { class: "stack" });
    main.replaceChildren(head("Keys", "What is stored, in no order of time. With tenant, scope and key one is found at once; a key alone is looked for."), make("div", { class: "stack" }, card("", form), results));
    await page(results, wanted, wanted.after);
  },
};

async function page(results, wanted, after) {
  let listing;
  try {
    listing = await get(`/operations${query({ ...wanted, limit: PAGE, after })}`);
  } catch (error) {
    return results.replaceChildren(notice("ill", error.message));
  }
  const { operations, next } = listing;
  const rows = operations.map((operation) => operation.unreadable
    ? [make("span", { class: "mono" }, operation.id), `unreadable: ${operation.unreadable}`, "", "", "", ""]
    : [make("a", { class: "mono", href: `#/key/${operation.id}` }, operation.key), chip(operation.state), make("span", { class: "mono" }, operation.scope), make("span", { class: "mono" }, operation.tenant), String(operation.fence), clock(operation.changed_at)]);
  const columns = [{ name: "Key" }, { name: "State" }, { name: "Scope" }, { name: "Tenant" }, { name: "Attempt", number: true }, { name: "Since", number: true }];
  const isLooking = wanted.key && next && !operations.length;
  const found = rows.length ? card("", table("Keys that were found", columns, rows)) : empty(isLooking ? "Not among those that were looked at." : "Nothing is stored that fits.", "");
  const more = next && button(isLooking ? "Look further" : "Next page", "", () => page(results, wanted, next));
  results.replaceChildren(found, ...(more ? [make("div", { class: "buttons" }, more)] : []));
}
