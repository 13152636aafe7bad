// Signing in.

import { signIn } from "./api.js";
import { field, head, make, notice } from "./elements.js";

/// Where the view is kept that somebody wanted to see, while they are at the provider.
const WANTED = "hapax-wanted";

/// Leads to the provider, asks for the token, or says how to set one where there is neither.
export function showLogin(main, { configured, provider }, signedIn) {
  const ways = [provider && away(provider), configured && form(signedIn, provider)].filter(Boolean);
  const parts = ways.length > 0 ? [head("Sign in", "Keys, doubts and events of this gateway."), ...ways] : unconfigured();
  main.replaceChildren(make("section", { class: "card login" }, parts));
}

/// The view that somebody wanted to see before they went to the provider.
export function wanted() {
  const hash = sessionStorage.getItem(WANTED);
  sessionStorage.removeItem(WANTED);
  return hash;
}

function away(provider) {
  const keep = () => sessionStorage.setItem(WANTED, location.hash);
  const link = make("a", { class: "button main", href: "/session/oidc", click: keep }, `Sign in with ${provider.called}`);
  return make("div", { class: "stack" }, provider.away && notice("ill", `${provider.called} does not answer. Try again; a token signs you in all the same.`), make("p", null, link));
}

function form(signedIn, provider) {
  const token = make("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const button = make("button", { class: provider ? false : "main", type: "submit" }, provider ? "Sign in with the token" : "Sign in");
  const refused = make("div");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    refused.replaceChildren();
    try {
      signedIn(await signIn(token.value));
    } catch (error) {
      refused.replaceChildren(notice("ill", error.message));
      token.select();
    }
    button.disabled = false;
  };
  return make("form", { submit }, field("token", "Token", token, "What admin_token or admin_read_token says in its configuration."), refused, button);
}

function unconfigured() {
  return [
    head("No token is configured"),
    make("p", null, "Until there is one, nobody can sign in, and nothing but health and metrics is served here. Set one and start the gateway again:"),
    make("pre", null, "HAPAX_ADMIN_TOKEN=\u2026 hapax serve \u2026\n\n# or in its configuration\nadmin_token_file = \"admin.token\"\nadmin_read_token_file = \"read.token\"   # lets look and change nothing"),
  ];
}
