// Pages of a list by cursor: the address holds the place, so back and forward work, and nothing piles up in memory.
import { html } from "../html.js";
import { ask, place } from "../router.js";
import { Icon } from "./icons.js";

const LONGEST = 1000;
const before = new Map(); // the page that a cursor was reached from

export function Pager({ next, label = "Pages" }) {
  const cursor = place.value.query.get("cursor");
  if (!cursor && !next) return null;
  const onward = () => {
    if (before.size >= LONGEST) before.clear();
    before.set(next, cursor);
    ask({ cursor: next });
    window.scrollTo(0, 0);
  };
  return html`<nav class="pager" aria-label=${label}>
    <button type="button" disabled=${!cursor} onClick=${() => ask({ cursor: null })}>First page</button>
    <button type="button" disabled=${!cursor} onClick=${() => ask({ cursor: before.get(cursor) || null })}>
      <${Icon} name="left" />Previous
    </button>
    <button type="button" disabled=${!next} onClick=${onward}>Next<${Icon} name="right" /></button>
  </nav>`;
}
