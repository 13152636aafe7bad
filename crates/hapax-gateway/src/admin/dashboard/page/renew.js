// Makes what is shown like what was read anew, and touches nothing that is the same: the focus, a selection, how
// far somebody has scrolled and what they have opened or typed stay.

/// Children of `fresh` take the place of those of `shown`. Elements with `data-key` are the same wherever they are,
/// others in their order. What has `data-own` belongs to whoever opened it, and is left alone.
export function renew(shown, fresh) {
  const left = [...shown.childNodes];
  const pairs = [...fresh.childNodes].map((part) => {
    const at = left.findIndex((old) => isSame(old, part));
    return { part, old: at < 0 ? null : left.splice(at, 1)[0] };
  });
  const hadFocus = left.some((old) => old.contains(document.activeElement));
  for (const old of left) old.remove();
  let place = shown.firstChild;
  for (const { part, old } of pairs) {
    if (old && old === place) place = old.nextSibling;
    else shown.insertBefore(old ?? part, place);
    if (old) patch(old, part);
  }
  if (hadFocus) document.querySelector("main h1")?.focus({ preventScroll: true });
}

const key = (node) => node.dataset?.key;
const isSame = (old, fresh) => old.nodeName === fresh.nodeName && key(old) === key(fresh);

function patch(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.dataset?.own !== undefined) return;
  // Whether something is opened is for whoever looks at it to say.
  const names = new Set([...old.attributes, ...fresh.attributes].map(({ name }) => name).filter((name) => name !== "open"));
  for (const name of names) {
    const value = fresh.getAttribute(name);
    if (value === null) old.removeAttribute(name);
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  old.heard = fresh.heard;
  renew(old, fresh);
}
