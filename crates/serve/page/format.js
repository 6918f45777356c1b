// Numbers, times and names for people.

const COUNT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en");

export const compact = (number) => COUNT.format(number ?? 0);
export const whole = (number) => WHOLE.format(number ?? 0);

// Two digits that tell something, also of what costs less than a cent.
export function dollars(amount) {
  if (amount === null || amount === undefined) return "";
  if (amount >= 1) return `$${amount.toFixed(2)}`;
  return amount >= 0.01 ? `$${amount.toFixed(3)}` : `$${amount.toFixed(5)}`;
}

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const two = (number) => String(number).padStart(2, "0");

export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function day(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export const minutes = (ms) => `${day(ms)} ${clock(ms)}`;

// How long ago, until that says less than the day.
export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, (now - ms) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (day(ms) === day(now)) return clock(ms);
  return seconds < 6 * 86_400 ? `${Math.ceil(seconds / 86_400)} d` : day(ms);
}

// The last names of a path: those that tell places apart.
export function place(path) {
  const names = path.split("/").filter(Boolean);
  return names.length > 2 ? `…/${names.slice(-2).join("/")}` : path;
}

export const STATES = {
  idle: null,
  busy: "running",
  retrying: "trying again",
  waiting_on_approval: "needs permission",
  waiting_on_user_input: "asks you",
  error: "failed",
};

export const isActive = (status) => !["idle", "error"].includes(status?.state ?? "idle");
