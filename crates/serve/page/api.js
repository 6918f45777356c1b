// Reads from the server. An answer that is none becomes an error with its reason.

export class ApiError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function asked(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { signal, credentials: "same-origin", headers: { accept: "application/json, text/plain" } });
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

export const session = (id, rest = "") => `/api/sessions/${encodeURIComponent(id)}${rest}`;
