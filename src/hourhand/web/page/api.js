// Asks the API and turns its problems into errors that views can show. Knows no view.
const BASE = "/api/v1";

export class Problem extends Error {
  constructor(body, status) {
    super(body.detail || body.title || `the server answered ${status}`);
    this.status = status;
    this.code = body.code || "unknown";
    this.faults = Array.isArray(body.errors) ? body.errors : [];
    this.requestId = body.request_id || null;
    this.retryable = Boolean(body.retryable);
  }
}

export async function ask(method, path, { query, body, headers, signal } = {}) {
  const address = BASE + path + search(query);
  const options = { method, headers: { Accept: "application/json", ...headers }, signal };
  if (body !== undefined) {
    options.headers["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ code: "unreachable", detail: "The server cannot be reached.", retryable: true }, 0);
  }
  if (response.status === 401) logIn();
  const found = await read(response);
  if (!response.ok) throw new Problem(found || {}, response.status);
  return found;
}

// The token is no longer known: to the form, and back here afterwards.
export function logIn() {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
}

export const get = (path, query, signal) => ask("GET", path, { query, signal });
export const post = (path, body, more) => ask("POST", path, { body, ...more });
export const patch = (path, body, more) => ask("PATCH", path, { body, ...more });
export const remove = (path, query) => ask("DELETE", path, { query });

export const jobPath = (id) => `/jobs/${encodeURIComponent(id)}`;
export const runPath = (id) => `/runs/${encodeURIComponent(id).replace("%40", "@")}`;

// A key under which a request that is sent again counts once.
export function requestKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
}

export function search(query) {
  const pairs = Object.entries(query || {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one) => one !== undefined && one !== null && one !== "" && one !== false)
      .map((one) => [name, String(one)]),
  );
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
}

async function read(response) {
  const text = await response.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return { detail: `The server answered ${response.status} with something that is not JSON.` };
  }
}
