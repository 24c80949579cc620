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

export function Ago({ at, zone }) {
  if (!at) return html`<span class="faint">–</span>`;
  return html`<time datetime=${at} title=${everywhere(at, zone)} class="ago">${relative(at, now.value)}</time>`;
}
