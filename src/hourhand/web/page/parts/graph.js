// The jobs around one that depends on others: levels from left to right, parents before children. Small graphs only.
import { html, useMemo } from "../html.js";
import { get, jobPath } from "../api.js";
import { useLoad } from "../load.js";
import { cut, nameOf, plural } from "../text.js";
import { Status, toneOf } from "./status.js";

const DRAWN = 60;
const WIDE = 150;
const TALL = 34;
const STEP_X = 190;
const STEP_Y = 46;

export function Graph({ id }) {
  const graph = useLoad((signal) => get(`${jobPath(id)}/graph`, undefined, signal), [id]);
  const found = graph.data;
  if (!found?.jobs || found.jobs.length < 2) return null;
  return html`<section aria-labelledby="graph-title">
    <h2 id="graph-title">Graph</h2>
    ${found.jobs.length <= DRAWN ? html`<${Drawing} graph=${found} id=${id} />` : html`<p class="faint">${plural(found.jobs.length, "job")}; too many to draw here.</p>`}
    <details><summary>As a list</summary>
      <ul class="plain-list">
        ${found.jobs.slice(0, 200).map((job) => html`<li key=${job.job_id}><a href=${jobPath(job.job_id)}>${cut(nameOf(job), 80)}</a> ${job.last_status && html`<${Status} state=${job.last_status} quiet />`}</li>`)}
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
        ({ job, x, y }) => html`<a key=${job.job_id} href=${jobPath(job.job_id)} aria-label="${cut(nameOf(job), 80)}, ${job.last_status || "no run yet"}">
          <rect class="node ${job.last_status ? toneOf(job.last_status) : ""} ${job.job_id === id ? "here" : ""}" x=${x} y=${y} width=${WIDE} height=${TALL} rx="4" />
          <text x=${x + 10} y=${y + TALL / 2 + 4}>${cut(nameOf(job), 20)}</text>
        </a>`,
      )}
    </svg>
  </div>`;
}

// A job's level is one more than that of its deepest parent.
function layout(graph) {
  const parents = new Map(graph.jobs.map((job) => [job.job_id, []]));
  for (const [parent, child] of graph.edges) if (parents.has(parent)) parents.get(child)?.push(parent);
  const levels = new Map();
  const level = (job, seen) => {
    if (levels.has(job)) return levels.get(job);
    if (seen.has(job)) return 0;
    seen.add(job);
    const found = Math.max(-1, ...parents.get(job).map((one) => level(one, seen))) + 1;
    levels.set(job, found);
    return found;
  };
  const rows = new Map();
  const placed = new Map();
  for (const job of graph.jobs) {
    const x = level(job.job_id, new Set());
    const y = rows.get(x) || 0;
    rows.set(x, y + 1);
    placed.set(job.job_id, { job, x: x * STEP_X + 2, y: y * STEP_Y + 2 });
  }
  return { placed, width: rows.size * STEP_X - STEP_X + WIDE + 4, height: Math.max(...rows.values()) * STEP_Y };
}
