// One job: its schedule in words, what comes, what became of its last runs, and what was changed when.
import { html, useMemo } from "../html.js";
import { get, jobPath, runPath } from "../api.js";
import { useLoad, useThrottled } from "../load.js";
import { useLive } from "../live.js";
import { ButtonLink, only, refuses } from "../me.js";
import { go, place } from "../router.js";
import { milliseconds } from "../time.js";
import { cut, nameOf, plural, pretty, targetText } from "../text.js";
import { askDelete, askPause, askSkip, clone, resume, runNow, unskip } from "../parts/actions.js";
import { Chart } from "../parts/chart.js";
import { Code } from "../parts/copy.js";
import { Graph } from "../parts/graph.js";
import { Icon } from "../parts/icons.js";
import { useKeys } from "../parts/keys.js";
import { Pager } from "../parts/pager.js";
import { Times } from "../parts/preview.js";
import { Failure, Loading } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { RunStrip } from "../parts/strip.js";
import { Versions } from "../parts/versions.js";
import { Ago, When } from "../parts/when.js";

const SHOWN = 60;
const COMING = 10;
const REFRESH_MS = 1000;
const SETTLED = new Set(["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED", "RUNNING", "RETRYING"]);

export function Job({ id }) {
  const cursor = place.value.query.get("cursor");
  const job = useLoad((signal) => get(jobPath(id), undefined, signal), [id]);
  const next = useLoad((signal) => get(`${jobPath(id)}/next`, { n: COMING }, signal), [id]);
  const runs = useLoad((signal) => get(`${jobPath(id)}/history`, { limit: SHOWN, cursor, coming: "false" }, signal), [id, cursor], { keep: true });
  const again = useThrottled(() => {
    runs.reload();
    next.reload();
  }, REFRESH_MS);
  const reread = useThrottled(() => (job.reload(), next.reload()), REFRESH_MS);
  useLive((message) => {
    if (message.kind === "reset") reread();
    if (message.kind === "reset" || message.kind === "stats") return again();
    if (message.job_id !== id) return undefined;
    if (!message.run_id) reread();
    return again();
  });
  const changed = () => (job.reload(), next.reload(), runs.reload());
  const found = job.data;
  const run = () => runNow(found).then(again);
  useKeys({
    p: () => (found ? (found.state === "paused" ? resume(found, changed) : askPause(found, changed)) : false),
    r: () => (found ? run() : false),
    e: () => (found ? refuses("editor") || go(`${jobPath(id)}/edit`) : false),
  });

  if (!found) {
    if (!job.error) return html`<h1 tabindex="-1" class="hidden">Job</h1><${Loading} slow=${job.slow} />`;
    return html`<div class="title"><h1 tabindex="-1">Job ${id}</h1></div>
      <${Failure} error=${job.error} retry=${job.reload} />
      ${job.error.status === 404 && html`<${Versions} id=${id} />`}`;
  }
  return html`<${Head} job=${found} run=${run} changed=${changed} />
    <${Paused} job=${found} />
    <section aria-labelledby="strip-title">
      <h2 id="strip-title">Last runs</h2>
      ${runs.error && html`<${Failure} error=${runs.error} retry=${runs.reload} />`}
      ${runs.data ? html`<${RunStrip} runs=${settled(runs.data.data)} zone=${found.tz} label="Runs, oldest first" />` : html`<${Loading} slow=${runs.slow} rows=${1} />`}
    </section>
    <${Graph} job=${found} run=${() => runNow(found, { downstream: true }).then(again)} />
    <div class="columns uneven">
      <div>
        <section aria-labelledby="charts-title">
          <h2 id="charts-title">Duration and lag</h2>
          ${runs.data && html`<${Durations} runs=${runs.data.data} zone=${found.tz} />`}
        </section>
        <section aria-labelledby="runs-title">
          <h2 id="runs-title">Runs</h2>
          <${Missed} id=${id} zone=${found.tz} />
          ${runs.data && html`<${Runs} runs=${runs.data.data} zone=${found.tz} busy=${runs.busy} /><${Pager} next=${runs.data.next_cursor} label="Pages of runs" />`}
        </section>
      </div>
      <div>
        <section aria-labelledby="next-title">
          <h2 id="next-title">Next</h2>
          <${Coming} job=${found} next=${next} changed=${changed} />
        </section>
        <${Details} job=${found} />
        <${Versions} id=${id} version=${found.version} />
      </div>
    </div>`;
}

const settled = (runs) => runs.filter((run) => SETTLED.has(run.status)).map(withDuration).reverse();

function withDuration(run) {
  const last = run.attempts.at(-1);
  return { ...run, duration_ms: last?.duration_ms ?? null };
}

function Head({ job, run, changed }) {
  const name = nameOf(job);
  return html`<div class="title">
    <div class="grow">
      <p class="crumbs"><a href="/jobs">Jobs</a></p>
      <h1 tabindex="-1"><bdi>${cut(name, 300)}</bdi></h1>
      <p class="under"><${Status} state=${job.state} /> <span>${job.schedule_in_words}</span>
        ${job.next_fire_time && html`<span class="faint">next <${Ago} at=${job.next_fire_time} zone=${job.tz} coming /></span>`}</p>
    </div>
    <div class="actions" role="group" aria-label="Actions">
      <button type="button" class="primary" onClick=${run} ...${only("operator")}><${Icon} name="play" />Run now</button>
      ${job.state === "paused"
        ? html`<button type="button" onClick=${() => resume(job, changed)} ...${only("operator")}><${Icon} name="again" />Resume</button>`
        : html`<button type="button" disabled=${job.state === "completed"} onClick=${() => askPause(job, changed)} ...${only("operator")}><${Icon} name="pause" />Pause</button>`}
      <${ButtonLink} role="editor" href="${jobPath(job.job_id)}/edit"><${Icon} name="edit" />Edit<//>
      <button type="button" onClick=${() => clone(job)} ...${only("editor")}><${Icon} name="copy" />Clone</button>
      <button type="button" class="danger" onClick=${() => askDelete(job)} ...${only("editor")}><${Icon} name="trash" />Delete</button>
    </div>
  </div>`;
}

function Paused({ job }) {
  if (job.state !== "paused") return null;
  return html`<div class="note warn">
    <${Icon} name="pause" />
    <p><strong>Paused</strong>${job.paused_until && html` until <${When} at=${job.paused_until} zone=${job.tz} />`}${job.note ? html`: <bdi>${cut(job.note, 500)}</bdi>` : ", without a note"}</p>
  </div>`;
}

function Coming({ job, next, changed }) {
  if (next.error) return html`<${Failure} error=${next.error} retry=${next.reload} />`;
  if (!next.data) return html`<${Loading} slow=${next.slow} rows=${3} />`;
  const skip = (one) => {
    if (one.skipped) return html`<button type="button" class="quiet small" aria-label="Let ${one.local} run after all" title="Let it run after all" onClick=${() => unskip(job, one.at, changed)} ...${only("operator")}><${Icon} name="again" /></button>`;
    return one.fires && html`<button type="button" class="quiet small" aria-label="Skip ${one.local}" title="Skip this time" onClick=${() => askSkip(job, one.at, changed)} ...${only("operator")}><${Icon} name="skip" /></button>`;
  };
  const empty = job.state === "paused" ? "None while it is paused." : job.after ? "When those before it have succeeded." : "It fires no more.";
  return html`<${Times} times=${next.data.data} zone=${job.tz || "UTC"} extra=${skip} empty=${empty} />`;
}

// Times that passed while nothing planned have no runs of their own; how many there were is known all the same.
function Missed({ id, zone }) {
  const missed = useLoad((signal) => get(`${jobPath(id)}/missed`, undefined, signal), [id]);
  const gaps = missed.data?.data || [];
  if (!gaps.length) return null;
  return html`<details class="missed">
    <summary>${plural(gaps.reduce((sum, gap) => sum + gap.missed, 0), "time")} passed while nothing planned</summary>
    <ul class="plain-list">
      ${gaps.slice(0, 20).map((gap) => html`<li key=${gap.from}><${When} at=${gap.from} zone=${zone} /> to <${When} at=${gap.to} zone=${zone} />: ${plural(gap.missed, "time")}, ${gap.ran} of them run late <span class="faint">(${gap.policy})</span></li>`)}
    </ul>
  </details>`;
}

function Durations({ runs, zone }) {
  const data = useMemo(() => {
    const ended = runs.filter((run) => run.started_at).reverse();
    const took = ended.map((run) => run.attempts.at(-1)?.duration_ms ?? null);
    return [ended.map((run) => Date.parse(run.scheduled_at) / 1000), took, ended.map((run) => run.lag_ms)];
  }, [runs]);
  if (data[0].length < 2) return html`<p class="faint">After two runs there is something to draw.</p>`;
  const series = [{ label: "duration", tone: "accent", points: true }, { label: "lag", tone: "muted", points: true }];
  const longest = Math.max(...data[1].map((one) => one || 0));
  return html`<${Chart} label="Duration and lag of the last ${data[0].length} runs; the longest took ${milliseconds(longest)}" series=${series} data=${data} unit=${milliseconds} zone=${zone} />`;
}

function Runs({ runs, zone, busy }) {
  if (!runs.length) return html`<p class="faint">No run yet.</p>`;
  return html`<div class="table-wrap" aria-busy=${busy}>
    <table class="list runs">
      <caption class="hidden">Runs, newest first</caption>
      <thead><tr><th>Scheduled</th><th>State</th><th class="num">Lag</th><th class="num">Took</th><th>What happened</th></tr></thead>
      <tbody>
        ${runs.map(
          (run) => html`<tr key=${run.run_id} data-row=${run.run_id}>
            <td class="name"><a class="row-link" href=${runPath(run.run_id)}><${When} at=${run.scheduled_at} zone=${zone} /></a></td>
            <td><${Status} state=${run.status} /></td>
            <td class="num" data-label="Lag">${milliseconds(run.lag_ms)}</td>
            <td class="num" data-label="Took">${milliseconds(run.attempts.at(-1)?.duration_ms)}</td>
            <td class="why">${told(run)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function told(run) {
  const tries = run.attempts.length > 1 ? `${run.attempts.length} attempts` : "";
  const trigger = run.trigger === "scheduled" ? "" : run.trigger;
  const wait = run.waits_for_slot ? "waits for a slot" : run.offered_at ? "waits for a worker that can run it" : run.waits_for?.length ? `waits for ${run.waits_for.map((one) => one.name || one.job_id).join(", ")}` : "";
  return [run.error || run.reason, wait, tries, trigger].filter(Boolean).map((one) => cut(one, 160)).join(" · ");
}

function Details({ job }) {
  const rows = [
    ["Target", targetText(job.target)], ["Schedule", job.cron || job.every || job.at], ["After", (job.after || []).join(", ")], ["Waits at most", job.wait], ["Zone", job.tz],
    ["Priority", job.priority], ["Pool", job.pool], ["Timeout", job.timeout], ["Delivery", job.delivery],
    ["Retries", `${job.retry.max}, from ${job.retry.first} by ${job.retry.factor} to ${job.retry.max_delay}`],
    ["At once", `${job.concurrency}, else ${job.overlap}`], ["Missed times", `${job.misfire.policy}, grace ${job.misfire.grace}`],
    ["Jitter", job.jitter], ["Key", job.key], ["Id", job.job_id],
  ];
  const body = pretty(job.payload);
  return html`<section aria-labelledby="details-title">
    <h2 id="details-title">Details</h2>
    <dl class="details">
      ${rows.filter(([, value]) => value).map(([label, value]) => html`<div key=${label}><dt>${label}</dt><dd><bdi>${cut(value, 2000)}</bdi></dd></div>`)}
      ${job.tags.length > 0 && html`<div><dt>Tags</dt><dd>${job.tags.map((tag) => html`<a class="tag" href="/jobs?tag=${encodeURIComponent(tag)}" key=${tag}>${tag}</a> `)}</dd></div>`}
    </dl>
    ${body && html`<details><summary>Payload</summary><${Code} label="Payload" text=${cut(body, 20000)} /></details>`}
  </section>`;
}
