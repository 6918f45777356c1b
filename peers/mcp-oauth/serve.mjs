// An MCP server behind a login, and its authorization server, on two ports of this machine. The authorization server
// is the one of the official SDK (`sdk`: registration, PKCE, revocation) or oauth2-mock-server (`mock`: OpenID Connect,
// signed tokens). Prints one line of JSON with their addresses; POST /control changes how they behave, GET counts.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import express from "express";
import { createLocalJWKSet, jwtVerify } from "jose";
import { OAuth2Server } from "oauth2-mock-server";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { InvalidGrantError, InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";

const mode = process.argv[2];

// How both behave: what `metadata`, `resource` and `redirect` name replaces what the servers say.
const knobs = {
  life: 3600,
  refresh: true,
  takes: true,
  challenge: true,
  metadata: {},
  resource: {},
  redirect: {},
  audience: null,
  more: null,
  // Client metadata documents by their addresses: what a server elsewhere would fetch.
  documents: {},
};
const counts = { registrations: 0, refreshes: 0, revocations: 0, calls: 0, registered: null, asked: null };

// Whoever issued access tokens forgets them: they are refused before they end.
let forget = () => {};

function control(app) {
  app.post("/control", express.json(), (request, response) => {
    const { forget: isForgotten, ...changes } = request.body;
    if (isForgotten) forget();
    response.json(Object.assign(knobs, changes));
  });
  app.get("/control", (_request, response) => response.json(counts));
}

// Replaces parts of one answer; null takes them away.
function changed(path, what) {
  return (request, response, next) => {
    if (!request.path.startsWith(path)) return next();
    const json = response.json.bind(response);
    response.json = (body) => {
      const all = { ...body, ...knobs[what] };
      return json(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
    };
    next();
  };
}

function redirected(target) {
  for (const [name, value] of Object.entries(knobs.redirect)) {
    value === null ? target.searchParams.delete(name) : target.searchParams.set(name, value);
  }
  return target;
}

// What the SDK leaves to who uses it: codes and tokens in memory, each refresh token good for one use.
class Provider {
  clients = new Map();
  codes = new Map();
  access = new Map();
  refresh = new Map();
  clientsStore = {
    getClient: async (id) => this.clients.get(id) ?? knobs.documents[id],
    registerClient: async (client) => {
      counts.registrations += 1;
      this.clients.set(client.client_id, client);
      return client;
    },
  };

  async authorize(client, params, response) {
    counts.asked = { client: client.client_id, scopes: params.scopes ?? [], resource: params.resource?.href };
    const code = randomUUID();
    this.codes.set(code, { client: client.client_id, params });
    const target = new URL(params.redirectUri);
    target.searchParams.set("code", code);
    if (params.state) target.searchParams.set("state", params.state);
    response.redirect(redirected(target).href);
  }

  async challengeForAuthorizationCode(_client, code) {
    const kept = this.codes.get(code);
    if (!kept) throw new InvalidGrantError("no such code");
    return kept.params.codeChallenge;
  }

  issue(client, scopes, resource) {
    const [access, refresh] = [`canary-access-${randomUUID()}`, `canary-refresh-${randomUUID()}`];
    const expiresAt = Math.floor(Date.now() / 1000) + knobs.life;
    this.access.set(access, { clientId: client, scopes, resource: new URL(knobs.audience ?? resource), expiresAt });
    this.refresh.set(refresh, { client, scopes, resource });
    return { access_token: access, token_type: "bearer", expires_in: knobs.life, refresh_token: refresh, scope: scopes.join(" ") };
  }

  async exchangeAuthorizationCode(client, code, _verifier, redirect, resource) {
    const kept = this.codes.get(code);
    this.codes.delete(code);
    const isSame = kept?.client === client.client_id && kept.params.redirectUri === redirect;
    if (!isSame || kept.params.resource?.href !== resource?.href) throw new InvalidGrantError("another client, place or resource");
    return this.issue(client.client_id, kept.params.scopes ?? [], resource.href);
  }

  async exchangeRefreshToken(client, token, _scopes, resource) {
    counts.refreshes += 1;
    const kept = this.refresh.get(token);
    this.refresh.delete(token);
    const isGood = knobs.refresh && kept?.client === client.client_id && kept.resource === resource?.href;
    if (!isGood) throw new InvalidGrantError(`not a good token: ${token}`);
    return this.issue(client.client_id, kept.scopes, kept.resource);
  }

  async verifyAccessToken(token) {
    const kept = this.access.get(token);
    if (!kept) throw new InvalidTokenError("no such token");
    return { token, ...kept };
  }

  async revokeToken(_client, { token }) {
    counts.revocations += 1;
    this.access.delete(token);
    this.refresh.delete(token);
  }
}

async function sdk(resource) {
  const provider = new Provider();
  forget = () => provider.access.clear();
  const app = express();
  control(app);
  app.use(changed("/.well-known/oauth-authorization-server", "metadata"));
  const server = createServer(app);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  app.use("/register", express.json(), (request, _response, next) => {
    counts.registered = request.body;
    next();
  });
  const unlimited = { rateLimit: false };
  app.use(
    mcpAuthRouter({
      provider,
      issuerUrl: new URL(issuer),
      resourceServerUrl: new URL(resource),
      scopesSupported: ["notes:read"],
      authorizationOptions: unlimited,
      clientRegistrationOptions: unlimited,
      revocationOptions: unlimited,
      tokenOptions: unlimited,
    }),
  );
  return { issuer: `${issuer}/`, verifier: provider };
}

async function mock(resource) {
  const server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(0, "127.0.0.1");
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.issuer.url = issuer;
  server.service.on("beforeTokenSigning", (token, request) => {
    token.payload.aud = knobs.audience ?? request.body.resource;
    token.payload.iat -= 1;
  });
  server.service.on("beforeResponse", (response, request) => {
    response.body.expires_in = knobs.life;
    counts.asked = { client: request.body.client_id, resource: request.body.resource };
    if (request.body.grant_type !== "refresh_token") return;
    counts.refreshes += 1;
    if (!knobs.refresh) {
      response.statusCode = 400;
      response.body = { error: "invalid_grant" };
    }
  });
  server.service.on("beforeAuthorizeRedirect", (redirect) => void redirected(redirect.url));
  server.service.on("beforeRevoke", () => void (counts.revocations += 1));
  const keys = createLocalJWKSet({ keys: server.issuer.keys.toJSON() });
  const verifyAccessToken = async (token) => {
    const verified = await jwtVerify(token, keys, { issuer, audience: resource }).catch((error) => {
      throw new InvalidTokenError(error.message);
    });
    const { scope, exp, aud } = verified.payload;
    return { token, clientId: "any", scopes: scope.split(" "), expiresAt: exp, resource: new URL(aud) };
  };
  return { issuer, verifier: { verifyAccessToken } };
}

function tools() {
  const server = new McpServer({ name: "notes", version: "1.0.0" });
  server.registerTool("note", { description: "The note" }, () => {
    counts.calls += 1;
    return { content: [{ type: "text", text: "the note says: buy milk" }] };
  });
  return server;
}

const app = express();
const server = createServer(app);
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${server.address().port}`;
const resource = `${origin}/mcp`;
const { issuer, verifier } = await (mode === "mock" ? mock(resource) : sdk(resource));

control(app);
app.use(changed("/.well-known/oauth-protected-resource", "resource"));
app.get("/.well-known/oauth-protected-resource/mcp", (_request, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ["notes:read"] });
});
const bearer = requireBearerAuth({
  verifier,
  requiredScopes: mode === "mock" ? [] : ["notes:read"],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(new URL(resource)),
  expectedResource: resource,
});
app.use("/mcp", (_request, response, next) => {
  if (!knobs.takes) return response.set("WWW-Authenticate", 'Bearer error="invalid_token"').status(401).end();
  if (!knobs.challenge) {
    const set = response.set.bind(response);
    response.set = (name, value) => (name === "WWW-Authenticate" ? response : set(name, value));
  }
  next();
}, bearer, express.json());
app.post("/mcp", async (request, response) => {
  if (knobs.more && request.body.method === "tools/call" && !request.auth.scopes.includes(knobs.more)) {
    response.set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="${knobs.more}"`);
    return response.status(403).end();
  }
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => transport.close());
  await tools().connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all("/mcp", (_request, response) => response.status(405).end());

console.log(JSON.stringify({ resource, issuer, control: `${origin}/control` }));
// Ends with who started it.
process.stdin.on("end", () => process.exit(0)).resume();
