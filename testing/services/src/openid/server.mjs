// An OpenID provider on loopback: a certified implementation, with people who need no password.
//
// Told by its arguments: its port. A client is known as `hapax` with the secret `secret of hapax`, wherever on loopback
// it is. Its keys are new at each start.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Provider, interactionPolicy } from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://localhost:${port}`;
const PEOPLE = { ada: ["payments-oncall", "everybody"], bo: ["payments", "everybody"], cy: ["everybody"] };

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };

// Nobody is asked for consent.
const policy = interactionPolicy.base();
policy.remove("consent");

const provider = new Provider(issuer, {
  clients: [{
    client_id: "hapax",
    client_secret: "secret of hapax",
    application_type: "native",
    redirect_uris: ["http://127.0.0.1/session/oidc/callback"],
  }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
  conformIdTokenClaims: false,
  cookies: { keys: [randomUUID()] },
  features: { devInteractions: { enabled: false } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: PEOPLE[id] }),
  }),
  interactions: { policy, url: (_, interaction) => `/interaction/${interaction.uid}` },
  jwks: { keys: [key] },
  async loadExistingGrant({ oidc }) {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid email groups");
    await grant.save();
    return grant;
  },
  pkce: { required: () => true },
});

const PAGE = `<!doctype html><html lang="en"><title>Provider</title><h1>Provider</h1>
<form method="post"><label>Name <input name="name"></label><button>Continue</button><button name="deny" value="1">Cancel</button></form>`;

async function interact(request, response) {
  if (request.method !== "POST") return response.setHeader("Content-Type", "text/html").end(PAGE);
  let body = "";
  for await (const piece of request) body += piece;
  const form = new URLSearchParams(body);
  const name = form.get("name");
  const result = form.has("deny") || !PEOPLE[name] ? { error: "access_denied" } : { login: { accountId: name } };
  return provider.interactionFinished(request, response, result);
}

const pages = provider.callback();
createServer((request, response) => (request.url.startsWith("/interaction/") ? interact(request, response) : pages(request, response)))
  .listen(port, "127.0.0.1", () => console.log("ready"));
