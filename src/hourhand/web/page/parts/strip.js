// A row of runs, oldest to the left. Full: ran. Tall and cut through: failed. Hollow: skipped. Slashed: cancelled.
import { html, useLayoutEffect, useRef } from "../html.js";
import { runPath } from "../api.js";
import { everywhere, milliseconds } from "../time.js";
import { plural } from "../text.js";
import { toneOf, wordOf } from "./status.js";

const STEP = 8;
const TALL = 20;

function shape(state, x) {
  const left = x + 1;
  switch (state) {
    case "SUCCEEDED":
      return html`<rect class="ok" x=${left} y="6" width="6" height="14" rx="1" />`;
    case "FAILED":
      return html`<path class="fail" d="M${left} 0h6v8l-6 4zM${left} 15l6-4v9h-6z" />`;
    case "RETRYING":
      return html`<path class="warn" d="M${left} 6h6v5h-6zM${left} 14h6v6h-6z" />`;
    case "RUNNING":
      return html`<rect class="run pulse" x=${left} y="6" width="6" height="14" rx="1" />`;
    case "CANCELLED":
      return html`<path class="hollow" d="M${left + 0.5} 6.500h5v13h-5zM${left + 0.5} 19.500l5-13" />`;
    case "SKIPPED":
      return html`<rect class="hollow" x=${left + 0.5} y="6.500" width="5" height="13" rx="1" />`;
    default:
      return html`<rect class="wait" x=${left} y="17" width="6" height="3" rx="1" />`;
  }
}

export function summary(runs, extra = "") {
  if (!runs.length) return `no runs yet${extra}`;
  const counts = new Map();
  for (const run of runs) counts.set(run.status, (counts.get(run.status) || 0) + 1);
  const parts = [...counts].map(([state, count]) => `${count} ${wordOf(state)}`);
  return `last ${plural(runs.length, "run")}: ${parts.join(", ")}${extra}`;
}

// For a list: one picture with one label.
export function Strip({ strip, size = 30 }) {
  if (!strip) return html`<span class="strip empty" aria-hidden="true"></span>`;
  const live = strip.running ? [{ status: "RUNNING" }] : strip.retrying ? [{ status: "RETRYING" }] : [];
  const runs = [...strip.runs.slice(-(size - live.length)), ...live];
  if (!runs.length) return html`<span class="strip empty faint">no runs yet</span>`;
  const first = size - runs.length;
  return html`<svg class="strip" preserveAspectRatio="xMinYMid" viewBox="0 0 ${size * STEP} ${TALL}" role="img" aria-label=${summary(runs)}>
    ${runs.map((run, index) => shape(run.status, (first + index) * STEP))}
  </svg>`;
}

// For one job: every run a link, one stop for the keyboard and arrows between them.
export function RunStrip({ runs, zone, label }) {
  const list = useRef(null);
  useLayoutEffect(() => {
    if (list.current) list.current.scrollLeft = list.current.scrollWidth; // the newest is what one looks for
  }, [runs.at(-1)?.run_id]);
  if (!runs.length) return html`<p class="faint">No run yet.</p>`;
  const move = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -runs.length, End: runs.length }[event.key];
    if (!step) return;
    event.preventDefault();
    const links = [...list.current.querySelectorAll("a")];
    const from = links.indexOf(document.activeElement);
    links[Math.min(links.length - 1, Math.max(0, from + step))].focus();
  };
  return html`<ol class="run-strip" aria-label=${label} ref=${list} onKeyDown=${move}>
    ${runs.map(
      (run, index) => html`<li key=${run.run_id}>
        <a
          href=${runPath(run.run_id)}
          tabindex=${index === runs.length - 1 ? 0 : -1}
          class="mark ${toneOf(run.status)}"
          title=${told(run, zone)}
          aria-label=${told(run, zone)}
          ><svg viewBox="0 0 8 20" aria-hidden="true" focusable="false">${shape(run.status, 0)}</svg></a
        >
      </li>`,
    )}
  </ol>`;
}

function told(run, zone) {
  const took = run.duration_ms ?? null;
  const why = run.reason || run.error;
  return [
    `${wordOf(run.status)}, ${everywhere(run.scheduled_at, zone).split("\n")[0]}`,
    took === null ? "" : `took ${milliseconds(took)}`,
    why ? String(why).slice(0, 200) : "",
  ]
    .filter(Boolean)
    .join("; ");
}
