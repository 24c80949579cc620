// An instant on the page: in the zone that the switch says, the others on hover.
import { html } from "../html.js";
import { everywhere, moment, now, relative, zoneLabel, zoneOf } from "../time.js";

export function When({ at, zone, seconds = true, fraction = false, bare = false }) {
  if (!at) return html`<span class="faint">–</span>`;
  const shown = zoneOf(zone);
  return html`<time datetime=${at} title=${everywhere(at, zone)}
    >${moment(at, shown, { seconds, fraction })}${bare ? null : html` <span class="zone">${zoneLabel(at, shown)}</span>`}</time
  >`;
}

// Clocks differ a little: what has been is never "in 1 s", and what comes is never "1 s ago".
export function Ago({ at, zone, coming = false }) {
  if (!at) return html`<span class="faint">–</span>`;
  const from = coming ? Math.min(now.value, Date.parse(at)) : Math.max(now.value, Date.parse(at));
  return html`<time datetime=${at} title=${everywhere(at, zone)} class="ago">${relative(at, from)}</time>`;
}
