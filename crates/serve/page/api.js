// Reads from the server. An answer that is none becomes an error with its reason.

// Where this origin keeps its key: browsers give the cookie to every port of the host, and this to nobody else.
const KEY = "attache-page-key";

// A login leads here with the key behind `#`.
export function takeKey() {
  const [, key] = /^#login=([0-9a-f]+)$/.exec(location.hash) ?? [];
  if (!key) return;
  localStorage.setItem(KEY, key);
  history.replaceState(null, "", location.pathname);
}

export const pageKey = () => localStorage.getItem(KEY) ?? "";

export class ApiError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function asked(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal, credentials: "same-origin", headers: { accept: "application/json, text/plain", "x-attache-page": pageKey() } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server can't be reached.");
  }
  if (answer.ok) return answer;
  const reason = (await answer.text()).trim();
  if (answer.status === 401) {
    dispatchEvent(new Event("attache-logged-out"));
    throw new ApiError(401, "You are not logged in any more.");
  }
  throw new ApiError(answer.status, reason || `The server answered ${answer.status}.`);
}

export async function json(path, parameters = {}, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== null && value !== "") query.set(name, value);
  const text = query.toString();
  return (await asked(text ? `${path}?${text}` : path, signal)).json();
}

export async function text(path) {
  return (await asked(path)).text();
}

// A file for the user. A link alone would not bring the key.
export async function download(path) {
  const answer = await asked(path);
  const [, name] = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "") ?? [];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name ?? "session";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const session = (id, rest = "") => `/api/sessions/${encodeURIComponent(id)}${rest}`;
