// Now: one sentence of verdict, the last hour in numbers, what just ran, and what changed.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get, jobPath, runPath } from "../api.js";
import { useLoad, useThrottled } from "../load.js";
import { state as liveState, useLive } from "../live.js";
import { milliseconds, now, serverTime, span } from "../time.js";
import { cut, number, plural } from "../text.js";
import { Chart } from "../parts/chart.js";
import { Code } from "../parts/copy.js";
import { Failure, Loading } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Ago } from "../parts/when.js";
import { CreateForm } from "./edit.js";

const EVERY_MS = 2000; // after something happened
const IDLE_MS = 10000;
const LATE_S = 5;
const FEED = 12;

export function Now() {
  const overview = useLoad((signal) => get("/overview", undefined, signal), [], { keep: true });
  const soon = useThrottled(overview.reload, EVERY_MS);
  useLive(soon);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || overview.reload(), IDLE_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => overview.data && serverTime(overview.data.now), [overview.data]);

  if (!overview.data) {
    if (overview.error) return html`<${Page}><${Failure} error=${overview.error} retry=${overview.reload} /><//>`;
    return html`<${Page}><${Loading} slow=${overview.slow} /><//>`;
  }
  const seen = overview.data;
  if (seen.sizes.jobs === 0) return html`<${Page}><${First} /><//>`;
  return html`<${Page}>
    <${Verdict} seen=${seen} error=${overview.error} />
    <${Figures} seen=${seen} />
    <div class="columns">
      <section aria-labelledby="lag-title"><h2 id="lag-title">Lag, last hour</h2><${LagChart} seen=${seen} /></section>
      <section aria-labelledby="fires-title"><h2 id="fires-title">Runs a minute</h2><${FiresChart} seen=${seen} /></section>
    </div>
    <div class="columns">
      <${Feed} />
      <${Changes} changes=${seen.changes} />
    </div>
  <//>`;
}

function Page({ children }) {
  return html`<h1 tabindex="-1" class="hidden">Now</h1>${children}`;
}

// A process knows of an hour at most, and of nothing from before its own beginning.
function period(seen) {
  const known = (Date.parse(seen.now) - Date.parse(seen.since)) / 1000;
  return known < 3600 ? `in the ${span(known)} since it started` : "in the last hour";
}

// The worst thing first; if there is none, that is the news.
export function verdict(seen, at) {
  const { sizes, hour } = seen;
  const broken = Object.entries(seen.parts).find(([, wrong]) => wrong !== "ok");
  if (broken) return { tone: "fail", text: `${broken[0]}: ${broken[1]}` };
  if (!seen.processes.length) return { tone: "fail", text: "No process is alive: nothing is planned or run." };
  const late = sizes.oldest_due_at ? (at - Date.parse(sizes.oldest_due_at)) / 1000 : 0;
  if (late > LATE_S) return { tone: "fail", text: `Behind: the oldest run has waited for ${span(late)}.` };
  const fires = hour.succeeded + hour.failed;
  if (hour.failed)
    return { tone: "fail", text: `${plural(hour.failed, "run")} of ${number(fires)} gave up ${period(seen)}.`, href: "/dead-letters" };
  if (hour.retrying)
    return { tone: "warn", text: `${plural(hour.retrying, "attempt")} failed ${period(seen)} and went on to a retry.`, href: "/jobs?failing=true" };
  if (sizes.dead) return { tone: "warn", text: `On time, but ${plural(sizes.dead, "dead letter")} ${sizes.dead === 1 ? "waits" : "wait"} for somebody.`, href: "/dead-letters" };
  if (!fires) return { tone: "ok", text: `Nothing was due ${period(seen)}.` };
  return { tone: "ok", text: `All on time: ${plural(fires, "fire")}, p99 ${milliseconds(hour.lag_p99_ms)}.` };
}

function Verdict({ seen, error }) {
  const found = error ? { tone: "warn", text: `Not up to date: ${error.message}` } : verdict(seen, now.value);
  return html`<p class="verdict ${found.tone}" role="status">
    <span class="dot" aria-hidden="true"></span>
    ${found.href ? html`<a href=${found.href}>${found.text}</a>` : found.text}
  </p>`;
}

function Figures({ seen }) {
  const { sizes, hour, processes } = seen;
  const late = sizes.oldest_due_at ? Math.max(0, (now.value - Date.parse(sizes.oldest_due_at)) / 1000) : 0;
  const atLeast = sizes.complete ? "" : "≥ "; // there was too much to count it all
  const figures = [
    ["Lag p99", milliseconds(hour.lag_p99_ms), `worst ${milliseconds(hour.lag_max_ms)}`],
    ["Fires", number(hour.succeeded + hour.failed), period(seen)],
    ["Failed", number(hour.failed), `${number(hour.retrying)} retried`, "/jobs?failing=true", hour.failed ? "fail" : ""],
    ["Depth", atLeast + number(sizes.planned + sizes.blocked), late > 1 ? `oldest due ${span(late)} ago` : `planned; ${number(sizes.blocked)} wait for a slot`],
    ["Running", atLeast + number(sizes.running), processes.map((one) => plural(one.alive, one.kind, one.kind === "up" ? "up" : `${one.kind}s`)).join(", ") || "no process"],
    ["Dead letters", atLeast + number(sizes.dead), "wait for somebody", "/dead-letters", sizes.dead ? "fail" : ""],
    ["Jobs", atLeast + number(sizes.jobs), "", "/jobs"],
  ];
  return html`<dl class="figures">
    ${figures.map(
      ([label, value, more, href, tone]) => html`<div key=${label} class=${tone || ""}>
        <dt>${href ? html`<a href=${href}>${label}</a>` : label}</dt>
        <dd><strong>${value}</strong> <span class="faint">${more}</span></dd>
      </div>`,
    )}
  </dl>`;
}

// One column per minute of the hour, those without anything included.
function columns(seen, names) {
  const end = Math.floor(Date.parse(seen.now) / 60000) * 60;
  const found = new Map(seen.minutes.map((minute) => [Math.floor(Date.parse(minute.from) / 1000), minute]));
  const since = Date.parse(seen.since) / 1000 - 60;
  const times = Array.from({ length: 60 }, (_, index) => end - (59 - index) * 60);
  return [times, ...names.map((name) => times.map((at) => found.get(at)?.[name] ?? (name.startsWith("lag") || at < since ? null : 0)))];
}

function LagChart({ seen }) {
  const data = useMemo(() => columns(seen, ["lag_p99_ms", "lag_p50_ms"]), [seen]);
  const series = [{ label: "p99", tone: "accent", points: true }, { label: "p50", tone: "muted", points: true }];
  return html`<${Chart} label="Lag by minute: p99 of the hour ${milliseconds(seen.hour.lag_p99_ms)}, half within ${milliseconds(seen.hour.lag_p50_ms)}" series=${series} data=${data} ago unit=${milliseconds} />`;
}

function FiresChart({ seen }) {
  const data = useMemo(() => {
    const [times, succeeded, failed] = columns(seen, ["succeeded", "failed"]);
    return [times, succeeded.map((count, index) => (count === null ? null : count + (failed[index] || 0))), failed];
  }, [seen]);
  const series = [{ label: "all", tone: "ok", bars: true }, { label: "failed", tone: "fail", bars: true }];
  return html`<${Chart} label="Runs by minute: ${number(seen.hour.succeeded)} succeeded and ${number(seen.hour.failed)} failed ${period(seen)}" series=${series} data=${data} ago unit=${(value) => number(Math.round(value))} />`;
}

// What just ended. Nothing moves while the pointer or the focus is on it.
function Feed() {
  const [rows, setRows] = useState([]);
  const held = useRef(false);
  const waiting = useRef([]);
  const [dropped, setDropped] = useState(0);
  const flush = useThrottled(() => {
    if (held.current || !waiting.current.length) return;
    const fresh = waiting.current;
    waiting.current = [];
    setRows((was) => [...fresh, ...was].slice(0, FEED));
  }, 500);
  useLive((message) => {
    if (message.kind === "stats") return setDropped(message.dropped);
    if (!message.run_id) return;
    waiting.current = [message, ...waiting.current].slice(0, FEED);
    flush();
  });
  const hold = (value) => () => {
    held.current = value;
    if (!value) flush();
  };
  return html`<section aria-labelledby="feed-title" onPointerEnter=${hold(true)} onPointerLeave=${hold(false)} onFocusCapture=${hold(true)} onBlurCapture=${hold(false)}>
    <h2 id="feed-title">Just now</h2>
    ${rows.length
      ? html`<ol class="feed">
          ${rows.map(
            (row) => html`<li key=${row.id} data-row=${row.run_id}>
              <${Status} state=${row.data.state} quiet />
              <a class="row-link name" href=${runPath(row.run_id)}>${cut(row.data.name || row.job_id, 80)}</a>
              <span class="num">${lateness(row.data.lag_ms)}</span>
              <span class="num faint"><${Ago} at=${row.at} /></span>
              ${(row.data.error || row.data.reason) && html`<span class="why">${row.data.error || row.data.reason}</span>`}
            </li>`,
          )}
        </ol>`
      : html`<p class="faint">${liveState.value === "live" ? "Runs appear here as they end." : "Not connected to what happens."}</p>`}
    ${dropped > 0 && html`<p class="faint">${plural(dropped, "more event")} in a second than are shown one by one.</p>`}
  </section>`;
}

function lateness(ms) {
  if (ms === undefined || ms === null) return "";
  return ms < 1 ? "on time" : `${milliseconds(ms)} late`;
}

const CHANGES = { "job.created": "created", "job.changed": "changed", "job.paused": "paused", "job.resumed": "resumed", "job.deleted": "deleted" };

function Changes({ changes }) {
  return html`<section aria-labelledby="changes-title">
    <h2 id="changes-title">Changed in the last hour</h2>
    ${changes.length
      ? html`<ol class="feed">
          ${changes.slice(0, FEED).map(
            (one) => html`<li key=${one.at + one.job_id + one.type} data-row=${one.job_id}>
              <span class="verb">${CHANGES[one.type] || one.type}</span>
              <a class="row-link name" href=${jobPath(one.job_id)}>${cut(one.name || one.job_id, 80)}</a>
              <span class="num faint">${one.version ? `version ${one.version}` : ""}</span>
              <span class="num faint"><${Ago} at=${one.at} /></span>
            </li>`,
          )}
        </ol>`
      : html`<p class="faint">No job was created, changed, paused or deleted.</p>`}
  </section>`;
}

function First() {
  const origin = location.origin;
  const curl = `curl -X POST ${origin}/api/v1/jobs -H 'Content-Type: application/json' -d '{\n  "name": "hello", "cron": "*/5 * * * *", "callback_url": "https://example.com/hook"\n}'`;
  const python = `from hourhand import Client\n\nwith Client(${JSON.stringify(origin)}) as c:\n    c.jobs.create({"name": "hello", "cron": "*/5 * * * *", "callback_url": "https://example.com/hook"})`;
  return html`<div class="first">
    <div>
      <h2>No jobs yet</h2>
      <p>Say what to call and when. Everything else has a default.</p>
      <${CreateForm} short />
    </div>
    <div>
      <h2>Or from elsewhere</h2>
      <${Code} label="curl" text=${curl} />
      <${Code} label="Python" text=${python} />
    </div>
  </div>`;
}
