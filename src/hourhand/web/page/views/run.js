// One run: its way from planned to finished, each attempt, what was asked and answered, and its log as it grows.
import { html, useEffect } from "../html.js";
import { get, jobPath, runPath } from "../api.js";
import { useLoad, useThrottled } from "../load.js";
import { useLive } from "../live.js";
import { milliseconds, now } from "../time.js";
import { only } from "../me.js";
import { cut, nameOf, pretty, quoted, targetText } from "../text.js";
import { askCancel, askDiscard, askRequeue, readJob, rerun } from "../parts/actions.js";
import { Code, Copy } from "../parts/copy.js";
import { Icon } from "../parts/icons.js";
import { useKeys } from "../parts/keys.js";
import { Log } from "../parts/log.js";
import { Failure, Loading } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Ago, When } from "../parts/when.js";

const REFRESH_MS = 500;
const POLL_MS = 2000; // a start is no event: what is under way is looked at again
const OVER = new Set(["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"]);

export function Run({ id }) {
  const run = useLoad((signal) => get(runPath(id), undefined, signal), [id]);
  const jobId = id.split("@")[0];
  const job = useLoad((signal) => readJob(jobId, signal), [jobId]);
  const again = useThrottled(run.reload, REFRESH_MS);
  useLive((message) => (message.kind === "reset" || message.run_id === id ? again() : undefined));
  const found = run.data;
  const over = found ? OVER.has(found.status) : true;
  const near = found && !over && Date.parse(found.due_at) - now.value < 5000;
  useEffect(() => {
    if (!near) return undefined;
    const timer = setInterval(() => document.hidden || run.reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [near]);
  useKeys({ r: () => (found && over ? rerun(found) : false) });

  if (!found) {
    if (run.error) return html`<div class="title"><h1 tabindex="-1">Run</h1></div><${Failure} error=${run.error} retry=${run.reload} />`;
    return html`<h1 tabindex="-1" class="hidden">Run</h1><${Loading} slow=${run.slow} />`;
  }
  const zone = job.data?.tz;
  return html`<${Head} run=${found} job=${job.data} zone=${zone} over=${over} changed=${run.reload} />
    ${run.error && html`<${Failure} error=${run.error} retry=${run.reload} />`}
    <${Verdict} run=${found} zone=${zone} />
    <${Progress} run=${found} />
    <section aria-labelledby="way-title"><h2 id="way-title">Timeline</h2><${Timeline} run=${found} zone=${zone} over=${over} /></section>
    <section aria-labelledby="attempts-title"><h2 id="attempts-title">Attempts</h2><${Attempts} run=${found} zone=${zone} /></section>
    <${Log} id=${id} over=${over} />
    <div class="columns">
      <section aria-labelledby="request-title"><h2 id="request-title">Request</h2><${Request} run=${found} job=${job.data} /></section>
      <section aria-labelledby="response-title"><h2 id="response-title">Response</h2><${Response} run=${found} /></section>
    </div>`;
}

function Head({ run, job, zone, over, changed }) {
  const name = job ? nameOf(job) : run.job_id;
  return html`<div class="title">
    <div class="grow">
      <p class="crumbs"><a href="/jobs">Jobs</a> / <a href=${jobPath(run.job_id)}><bdi>${cut(name, 80)}</bdi></a></p>
      <h1 tabindex="-1"><${When} at=${run.scheduled_at} zone=${zone} fraction=${run.trigger !== "scheduled"} /></h1>
      <p class="under"><${Status} state=${run.status} /> <span>${run.trigger}</span>
        ${run.version ? html`<span class="faint">version ${run.version}</span>` : null}
        ${run.rerun_of && html`<span>again of <a href=${runPath(run.rerun_of)}>${run.rerun_of}</a></span>`}
        <code class="faint">${run.run_id}</code></p>
    </div>
    <div class="actions" role="group" aria-label="Actions">
      ${!over && html`<button type="button" class="danger" disabled=${run.cancel_asked} onClick=${() => askCancel(run, changed)} ...${only("operator")}><${Icon} name="close" />${run.cancel_asked ? "Asked to stop" : "Cancel"}</button>`}
      ${over && html`<button type="button" onClick=${() => rerun(run)} ...${only("operator")}><${Icon} name="again" />Run again</button>`}
      ${run.status === "FAILED" && html`<button type="button" class="primary" onClick=${() => askRequeue([run.run_id], changed)} ...${only("operator")}>Requeue</button>
        <button type="button" class="danger" onClick=${() => askDiscard([run.run_id], changed)} ...${only("operator")}>Discard</button>`}
    </div>
  </div>`;
}

// What went wrong, or what it waits for, in one line.
function Verdict({ run, zone }) {
  if (run.awaits_report)
    return html`<div class="note"><p>Its target accepted it and will report${run.deadline_at && html`, at the latest <${When} at=${run.deadline_at} zone=${zone} />`}.</p></div>`;
  if (run.waits_for?.length)
    return html`<div class="note"><p>It waits for ${run.waits_for.slice(0, 20).map((one, index) => html`${index ? ", " : ""}<a href=${jobPath(one.job_id)}><bdi>${cut(one.name || one.job_id, 80)}</bdi></a>`)}.</p></div>`;
  const why = run.waits_for_slot ? "It waits for another run of its job to end."
    : run.offered_at ? "No worker could run it so far." : run.reason || run.error;
  if (!why) return null;
  const tone = run.status === "FAILED" ? "fail" : "warn";
  return html`<div class="note ${tone}"><${Icon} name="warn" /><p class="output">${cut(why, 4000)}</p></div>`;
}

function Progress({ run }) {
  if (!run.progress) return null;
  const { fraction, message, at } = run.progress;
  return html`<div class="progress">
    <progress max="1" value=${fraction ?? undefined} aria-label="Progress of the run"></progress>
    <span>${fraction === null || fraction === undefined ? "" : `${Math.round(fraction * 100)} %`} ${cut(message || "", 200)}</span>
    <span class="faint"><${Ago} at=${at} /></span>
  </div>`;
}

function Timeline({ run, zone, over }) {
  const last = run.attempts.at(-1);
  const steps = [
    ["Planned for", run.scheduled_at],
    ["Due", run.attempts[0]?.due_at || run.due_at],
    ["Started", run.started_at, run.lag_ms === null ? "" : `${milliseconds(run.lag_ms)} late`],
    ["Finished", run.finished_at, last && over ? `took ${milliseconds(last.duration_ms)}` : ""],
  ];
  return html`<ol class="timeline">
    ${steps.map(
      ([label, at, more]) => html`<li key=${label} class=${at ? "past" : "open"}>
        <span class="label">${label}</span>
        <span>${at ? html`<${When} at=${at} zone=${zone} fraction />` : html`<span class="faint">not yet</span>`}</span>
        <span class="faint">${more || ""}</span>
      </li>`,
    )}
  </ol>`;
}

function Attempts({ run, zone }) {
  if (!run.attempts.length) return html`<p class="faint">None so far${run.worker ? `; ${run.worker} has it` : ""}.</p>`;
  return html`<div class="table-wrap">
    <table class="list attempts">
      <caption class="hidden">Attempts, oldest first</caption>
      <thead><tr><th class="num">#</th><th>State</th><th>Started</th><th class="num">Took</th><th>Worker</th><th>What happened</th></tr></thead>
      <tbody>
        ${run.attempts.map(
          (one) => html`<tr key=${one.attempt}>
            <td class="num" data-label="Attempt">${one.attempt}</td>
            <td><${Status} state=${one.status} /></td>
            <td data-label="Started"><${When} at=${one.started_at} zone=${zone} fraction /></td>
            <td class="num" data-label="Took">${milliseconds(one.duration_ms)}</td>
            <td data-label="Worker">${one.worker || "–"}</td>
            <td class="why output">${cut(one.error || one.reason || "", 2000)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function Request({ run, job }) {
  if (!job) return html`<p class="faint">The job is gone.</p>`;
  const body = pretty(job.payload);
  return html`<p><code>${cut(targetText(job.target), 2000)}</code></p>
    ${body && html`<${Code} label="Payload, as the job has it now" text=${cut(body, 20000)} />`}
    ${job.target.type === "http" && html`<p><${Copy} label="Copy as curl" text=${() => curl(run, job)} /></p>`}`;
}

function curl(run, job) {
  const { url, method, headers } = job.target;
  const all = { "Content-Type": "application/json", ...headers, "Idempotency-Key": run.run_id };
  const lines = [`curl -X ${method} ${quoted(url)}`, ...Object.entries(all).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (job.payload !== null) lines.push(`-d ${quoted(JSON.stringify(job.payload))}`);
  return lines.join(" \\\n  ");
}

function Response({ run }) {
  if (run.response === null || run.response === undefined) return html`<p class="faint">None.</p>`;
  return html`<${Code} label="What the target answered" text=${cut(pretty(run.response), 20000)} />`;
}
