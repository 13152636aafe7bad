// Elements, made of text: nothing that comes from the gateway is ever read as markup.

/// An element. Attributes that are false, null or undefined are left out; functions listen.
export function make(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") hear(element, name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside.flat(Infinity).filter((part) => part !== null && part !== undefined && part !== false));
  return element;
}

/// Whoever renews an element changes what it does, not that it listens.
function hear(element, name, action) {
  element.heard = { ...element.heard, [name]: action };
  element.addEventListener(name, (event) => element.heard?.[name]?.(event));
}

const SVG = "http://www.w3.org/2000/svg";

export function drawn(tag, attributes, ...inside) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...inside.flat());
  return element;
}

export const find = (id) => document.getElementById(id);

/// Sets a text only where it differs, so that nothing is read aloud again for no reason.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/// Tells whoever cannot see it.
export function announce(text) {
  const said = find("said");
  said.textContent = "";
  setTimeout(() => (said.textContent = text), 50);
}

/// The beginning of a view: its heading, which gets the focus, and a sentence about it.
export function head(title, hint, ...more) {
  return make("div", { class: "head" }, make("h1", { tabindex: "-1" }, title), hint && make("p", { class: "hint" }, hint), ...more);
}

export function card(title, ...inside) {
  if (!title) return make("div", { class: "card" }, ...inside);
  return make("section", { class: "card", "aria-label": title }, make("h2", null, title), ...inside);
}

export function chip(state) {
  return make("span", { class: `chip ${state}` }, state.replaceAll("_", " "));
}

export function notice(kind, ...inside) {
  return make("p", { class: `notice ${kind}`, role: kind === "ill" ? "alert" : "status" }, ...inside);
}

export function empty(strong, rest) {
  return make("p", { class: "empty" }, make("strong", null, strong), rest);
}

export function button(label, kind, action) {
  return make("button", { type: "button", class: kind, click: action, "data-key": label }, label);
}

/// A label and what it names.
export function field(id, label, control, hint) {
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return make("div", { class: "field" }, make("label", { for: id }, label), control, hint && make("span", { class: "hint", id: `${id}-hint` }, hint));
}

/// A table whose first column names the row. Where there is little room each row becomes a paragraph;
/// the roles are said because a browser forgets them then.
/// Rows that may come and go are known by their `keys`.
export function table(caption, columns, rows, keys = []) {
  const heads = columns.map(({ name, number }) => make("th", { scope: "col", role: "columnheader", class: number && "n" }, name));
  const lines = rows.map((cells, row) => make("tr", { role: "row", "data-key": keys[row] }, cells.map((cell, at) => {
    if (at === 0) return make("th", { scope: "row", role: "rowheader" }, cell);
    const { name, number } = columns[at];
    const isZero = number && (cell === "0" || cell === "");
    return make("td", { role: "cell", class: [number && "n", isZero && "zero"].filter(Boolean).join(" ") || false, "data-name": name }, cell);
  })));
  return make("div", { class: "table", role: "group", "aria-label": caption, tabindex: "0" }, make("table", { class: "folds", role: "table", "aria-label": caption },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, heads)), make("tbody", { role: "rowgroup" }, lines)));
}

/// Names and their values.
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", { class: "facts" }, known.map(([name, value]) => [make("dt", null, name), make("dd", null, value)]));
}
