// Instants for people: the job's zone first, or the viewer's, or UTC, as the one switch says; always with the zone.
import { signal } from "./html.js";
import { zoneMode } from "./settings.js";

export const now = signal(Date.now()); // ticks once a second, in the server's time
let skewMs = 0;

setInterval(() => (now.value = Date.now() + skewMs), 1000);

// The server's clock as it just answered; small differences are the network's.
export function serverTime(iso) {
  const difference = Date.parse(iso) - Date.now();
  skewMs = Math.abs(difference) > 2000 ? difference : 0;
}

export const MINE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function zoneOf(jobZone) {
  if (zoneMode.value === "utc") return "UTC";
  return zoneMode.value === "mine" ? MINE : known(jobZone || "UTC");
}

// "16 Nov 09:00:00", with the year where it is another one.
export function moment(iso, zone, { seconds = true, fraction = false } = {}) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  const parts = Object.fromEntries(formatter(zone).formatToParts(at).map((part) => [part.type, part.value]));
  const year = parts.year === String(new Date(now.peek()).getUTCFullYear()) ? "" : ` ${parts.year}`;
  const clock = `${parts.hour}:${parts.minute}${seconds ? `:${parts.second}` : ""}`;
  const millis = fraction ? `.${String(at.getUTCMilliseconds()).padStart(3, "0")}` : "";
  return `${parts.weekday} ${parts.day} ${parts.month}${year} ${clock}${millis}`;
}

export function zoneLabel(iso, zone) {
  const at = new Date(iso);
  const part = formatter(zone).formatToParts(Number.isNaN(at.getTime()) ? new Date() : at);
  return part.find((one) => one.type === "timeZoneName")?.value || zone;
}

// All three readings, for a hover.
export function everywhere(iso, jobZone) {
  const zones = [...new Set([known(jobZone || "UTC"), MINE, "UTC"])];
  return zones.map((zone) => `${moment(iso, zone)} ${zone}`).join("\n");
}

// "in 4 min", "12 s ago".
export function relative(iso, from) {
  const seconds = Math.round((Date.parse(iso) - from) / 1000);
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const text = span(size);
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}

export function span(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

// Milliseconds as "3 ms", "1.2 s", "4 min 5 s".
export function milliseconds(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
  return span(ms / 1000);
}

// An instant as an input of type datetime-local has it, in the viewer's zone; and back to RFC 3339.
export function toLocalInput(iso) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return "";
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, 19);
}

export function fromLocalInput(text) {
  const at = new Date(text);
  return !text || Number.isNaN(at.getTime()) ? null : at.toISOString().replace(/\.000Z$/, "Z");
}

const formatters = new Map();

function formatter(zone) {
  let found = formatters.get(zone);
  if (!found) {
    if (formatters.size > 500) formatters.clear();
    found = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      weekday: "short",
      day: "2-digit",
      month: "short",
      year: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZoneName: "short",
    });
    formatters.set(zone, found);
  }
  return found;
}

const checked = new Map();

function known(zone) {
  if (!checked.has(zone)) {
    if (checked.size > 1000) checked.clear();
    try {
      formatter(zone);
      checked.set(zone, zone);
    } catch {
      checked.set(zone, "UTC"); // this browser does not know it
    }
  }
  return checked.get(zone);
}
