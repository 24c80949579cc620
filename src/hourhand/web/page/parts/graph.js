// The jobs around one that depends on others: levels from left to right, parents before children. Small graphs only.
import { html, useMemo } from "../html.js";
import { get, jobPath } from "../api.js";
import { useLoad, useThrottled } from "../load.js";
import { useLive } from "../live.js";
import { cut, nameOf, plural } from "../text.js";
import { Icon } from "./icons.js";
import { Status, toneOf, wordOf } from "./status.js";

const DRAWN = 60;
const WIDE = 150;
const TALL = 34;
const STEP_X = 190;
const STEP_Y = 46;
const REFRESH_MS = 2000;

export function Graph({ job, run }) {
  const id = job.job_id;
  const graph = useLoad((signal) => get(`${jobPath(id)}/graph`, undefined, signal), [id, job.version]);
  const again = useThrottled(graph.reload, REFRESH_MS);
  useLive((message) => {
    const jobs = graph.data?.jobs || [];
    if (jobs.length > 1 && (message.kind === "reset" || jobs.some((one) => one.job_id === message.job_id))) again();
  });
  const found = graph.data;
  if (!found?.jobs || found.jobs.length < 2) return null;
  const leads = found.edges.some(([parent]) => parent === id);
  return html`<section aria-labelledby="graph-title">
    <h2 id="graph-title">Graph</h2>
    ${found.jobs.length <= DRAWN ? html`<${Drawing} graph=${found} id=${id} />` : html`<p class="faint">${plural(found.jobs.length, "job")}; too many to draw here.</p>`}
    ${found.truncated && html`<p class="faint">There are more, further away.</p>`}
    ${leads && html`<p><button type="button" class="small" onClick=${run}><${Icon} name="play" />Run it and what follows</button></p>`}
    <details><summary>As a list</summary>
      <ul class="plain-list">
        ${found.jobs.slice(0, 200).map((job) => html`<li key=${job.job_id}><a href=${jobPath(job.job_id)}>${cut(nameOf(job), 80)}</a> ${job.status && html`<${Status} state=${job.status} quiet />`}</li>`)}
      </ul>
    </details>
  </section>`;
}

function Drawing({ graph, id }) {
  const { placed, width, height } = useMemo(() => layout(graph), [graph]);
  return html`<div class="graph" tabindex="0" role="group" aria-label="Graph of ${plural(graph.jobs.length, "job")}">
    <svg viewBox="0 0 ${width} ${height}" width=${width} height=${height}>
      ${graph.edges.map(([parent, child]) => {
        const [from, to] = [placed.get(parent), placed.get(child)];
        if (!from || !to) return null;
        const [x, y, u, v] = [from.x + WIDE, from.y + TALL / 2, to.x, to.y + TALL / 2];
        return html`<path key=${parent + child} class="edge" d="M${x} ${y}C${x + 25} ${y} ${u - 25} ${v} ${u} ${v}" />`;
      })}
      ${[...placed.values()].map(
        ({ job, x, y }) => html`<a key=${job.job_id} href=${jobPath(job.job_id)} aria-label="${cut(nameOf(job), 80)}, ${job.status ? wordOf(job.status) : "no run yet"}">
          <rect class="node ${job.status ? toneOf(job.status) : ""} ${job.job_id === id ? "here" : ""}" x=${x} y=${y} width=${WIDE} height=${TALL} rx="4" />
          <text x=${x + 10} y=${y + TALL / 2 + 4}>${cut(nameOf(job), 20)}</text>
        </a>`,
      )}
    </svg>
  </div>`;
}

function layout(graph) {
  const rows = new Map();
  const placed = new Map();
  const first = Math.min(...graph.jobs.map((job) => job.level));
  for (const job of graph.jobs) {
    const x = job.level - first;
    const y = rows.get(x) || 0;
    rows.set(x, y + 1);
    placed.set(job.job_id, { job, x: x * STEP_X + 2, y: y * STEP_Y + 2 });
  }
  const width = Math.max(...rows.keys()) * STEP_X + WIDE + 4;
  return { placed, width, height: Math.max(...rows.values()) * STEP_Y };
}
