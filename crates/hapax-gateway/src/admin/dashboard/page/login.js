// Signing in.

import { signIn } from "./api.js";
import { field, head, make, notice } from "./elements.js";

/// Asks for the token; says how to set one where there is none.
export function showLogin(main, { configured }, signedIn) {
  main.replaceChildren(make("section", { class: "card login" }, ...(configured ? form(signedIn) : unconfigured())));
}

function form(signedIn) {
  const token = make("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const button = make("button", { class: "main", type: "submit" }, "Sign in");
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
  return [
    head("Sign in", "Keys, doubts and events of this gateway."),
    make("form", { submit }, field("token", "Token", token, "What admin_token or admin_read_token says in its configuration."), refused, button),
  ];
}

function unconfigured() {
  return [
    head("No token is configured"),
    make("p", null, "Until there is one, nobody can sign in, and nothing but health and metrics is served here. Set one and start the gateway again:"),
    make("pre", null, "HAPAX_ADMIN_TOKEN=\u2026 hapax serve \u2026\n\n# or in its configuration\nadmin_token_file = \"admin.token\"\nadmin_read_token_file = \"read.token\"   # lets look and change nothing"),
  ];
}
