// Looking for keys.

import { get, query } from "./api.js";
import { button, card, chip, empty, field, head, make, notice, table } from "./elements.js";
import { renew } from "./renew.js";
import { STATES, clock, secondsBetween, span } from "./words.js";

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
    const turn = async (after) => {
      wanted.after = after;
      renew(results, make("div", null, await page(wanted, context, turn)));
    };
    await turn(wanted.after);
    // Looking for a key reads many records: that is done when somebody asks.
    const isSearch = wanted.key && !(wanted.tenant && wanted.scope);
    return isSearch ? {} : { renew: () => turn(wanted.after) };
  },
};

async function page(wanted, context, turn) {
  let listing;
  try {
    listing = await get(`/operations${query({ ...wanted, limit: PAGE })}`);
  } catch (error) {
    return [notice("ill", error.message)];
  }
  const { operations, next } = listing;
  const now = context.figures?.at ?? new Date().toISOString();
  const isRunning = wanted.state === "running";
  const columns = [{ name: "Key" }, { name: "State" }, { name: "Scope" }, { name: "Tenant" }, { name: "Attempt", number: true },
    ...(isRunning ? [{ name: "Owner" }, { name: "Lease" }, { name: "For", number: true }] : [{ name: "Since", number: true }])];
  const rows = operations.map((operation) => (operation.unreadable ? unreadable(operation, columns) : row(operation, isRunning, now)));
  const isLooking = wanted.key && next && !operations.length;
  const found = rows.length ? card("", table("Keys that were found", columns, rows, operations.map(({ id }) => id))) : empty(isLooking ? "Not among those that were looked at." : "Nothing is stored that fits.", "");
  const more = next && button(isLooking ? "Look further" : "Next page", "", () => turn(next));
  return [found, ...(more ? [make("div", { class: "buttons" }, more)] : [])];
}

const mono = (text) => make("span", { class: "mono" }, text);
const unreadable = ({ id, unreadable: why }, columns) => [mono(id), `unreadable: ${why}`, ...columns.slice(2).map(() => "")];

function row(operation, isRunning, now) {
  const { id, key, state, scope, tenant, fence, changed_at: since, owner, lease_until: until } = operation;
  const cells = [make("a", { class: "mono", href: `#/key/${id}` }, key), chip(state), mono(scope), mono(tenant), String(fence)];
  if (!isRunning) return [...cells, clock(since)];
  const lease = until > now ? `ends in ${span(secondsBetween(now, until))}, unless renewed` : `over for ${span(secondsBetween(until, now))}`;
  return [...cells, mono(owner ?? ""), until ? lease : "", span(secondsBetween(since, now))];
}
