// The gateway's admin API.

/// A refusal, in the gateway's words.
export class Refusal extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/// What a form of another page cannot send.
const OURS = { "Hapax-Dashboard": "1" };

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(0, "unreachable", "The gateway does not answer.");
  }
  if (answer.status === 204) return null;
  const document = await answer.json().catch(() => ({}));
  if (answer.ok) return document;
  const refusal = new Refusal(answer.status, document.code ?? "unknown", document.detail ?? `The gateway answered ${answer.status}.`);
  if (answer.status === 401 && path.startsWith("/v1/")) window.dispatchEvent(new Event("signed-out"));
  throw refusal;
}

export const get = (path) => ask(`/v1${path}`);

export const post = (path, document) =>
  ask(`/v1${path}`, { method: "POST", headers: { ...OURS, "Content-Type": "application/json" }, body: JSON.stringify(document) });

/// Who somebody is to the gateway. Whom a provider has signed in is a person, whose changes are theirs.
export async function session() {
  const who = await ask("/session");
  person = who.person;
  return who;
}
export const signedInAs = () => person;
let person = null;

export const signIn = (token) =>
  ask("/session", { method: "POST", headers: { ...OURS, "Content-Type": "application/json" }, body: JSON.stringify({ token }) });

export const signOut = () => ask("/session", { method: "DELETE", headers: OURS });

/// A query string of what is there.
export function query(values) {
  const there = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(there).toString();
  return text ? `?${text}` : "";
}
