// A schedule before a job has it: in words, its coming times with what DST does to them, and how they differ.
import { html, useEffect, useState } from "../html.js";
import { post } from "../api.js";
import { moment, zoneLabel } from "../time.js";

const PATIENCE_MS = 250;
const TIMES = 10;
const AROUND = 5;

// What a schedule means, a moment after the last keystroke; `was` is the job's present schedule, if it has one.
export function usePreview(schedule, was) {
  const [shown, show] = useState({ now: null, was: null, error: null });
  const key = JSON.stringify(schedule);
  useEffect(() => {
    if (!schedule) return show({ now: null, was: null, error: null });
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      const read = (one) => post("/schedules/preview", { n: TIMES, ...one }, { signal: controller.signal });
      try {
        const changed = was && JSON.stringify(was) !== key;
        const [fresh, before] = await Promise.all([read(schedule), changed ? read(was).catch(() => null) : null]);
        show({ now: fresh, was: before, error: null });
        if (!fresh.next_change) return;
        const around = await read({ ...schedule, after: shortlyBefore(fresh.next_change), n: AROUND }).catch(() => null);
        const marked = around?.data.filter((one) => one.note) || [];
        if (marked.length) show({ now: fresh, was: before, error: null, around: marked });
      } catch (error) {
        if (error.name !== "AbortError") show({ now: null, was: null, error });
      }
    }, PATIENCE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, JSON.stringify(was)]);
  return shown;
}

// What a schedule does on the day of the next change is worth seeing, however far that day is.
function shortlyBefore(change) {
  return new Date(Date.parse(change.at) - 2 * 3600000).toISOString();
}

export function Preview({ shown }) {
  if (shown.error) return html`<div class="preview"><p class="error" role="alert">${shown.error.message}</p></div>`;
  if (!shown.now) return html`<div class="preview"><p class="faint">The coming times appear here.</p></div>`;
  const { now, was } = shown;
  return html`<div class="preview" aria-live="polite">
    <p class="words">${now.schedule_in_words}</p>
    ${was ? html`<${Difference} now=${now} was=${was} />` : html`<${Times} times=${now.data} zone=${now.tz} />`}
    ${now.next_change && html`<p class="faint change">${change(now.next_change, now.tz)}</p>`}
    ${shown.around?.length > 0 && html`<p class="hidden">Around that change:</p><${Times} times=${shown.around} zone=${now.tz} />`}
  </div>`;
}

export function Times({ times, zone, extra = () => null, empty = "It fires no more." }) {
  if (!times.length) return html`<p class="faint">${empty}</p>`;
  return html`<ol class="times">
    ${times.map(
      (one) => html`<li key=${one.at + one.fires} class=${one.fires ? "" : "dropped"}>
        <${Local} one=${one} zone=${zone} />
        ${one.note && html`<span class="dst">${one.note}</span>`} ${extra(one)}
      </li>`,
    )}
  </ol>`;
}

function Difference({ now, was }) {
  const last = Math.min(...[now, was].map((one) => Date.parse(one.data.at(-1)?.at || 0) || Infinity));
  const rows = new Map();
  for (const [sign, one] of [["−", was], ["+", now]])
    for (const time of one.data) {
      if (!time.fires || Date.parse(time.at) > last) continue;
      const other = rows.get(time.at);
      rows.set(time.at, { ...time, zone: one.tz, sign: other ? " " : sign });
    }
  const sorted = [...rows.values()].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  const added = sorted.filter((row) => row.sign === "+").length;
  const gone = sorted.filter((row) => row.sign === "−").length;
  return html`<p>${added || gone ? `Of the coming times ${gone} go and ${added} come:` : "The coming times stay as they are:"}</p>
    <ol class="times diff">
      ${sorted.slice(0, 2 * TIMES).map(
        (row) => html`<li key=${row.at} class=${{ "+": "plus", "−": "minus" }[row.sign] || ""}>
          <span class="sign" aria-label=${{ "+": "added", "−": "removed" }[row.sign] || "unchanged"}>${row.sign}</span>
          <${Local} one=${row} zone=${row.zone} />
          ${row.note && html`<span class="dst">${row.note}</span>`}
        </li>`,
      )}
    </ol>`;
}

function Local({ one, zone }) {
  return html`<time datetime=${one.at}>${moment(one.at, zone)} <span class="zone">${zoneLabel(one.at, zone)}</span></time>`;
}

function change(next, zone) {
  const hours = (seconds) => `UTC${seconds < 0 ? "−" : "+"}${Math.abs(seconds) / 3600}`;
  return `${zone} changes from ${hours(next.old_offset_s)} to ${hours(next.new_offset_s)} on ${moment(next.at, zone, { seconds: false })}.`;
}
