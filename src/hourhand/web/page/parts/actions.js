// What one does to jobs and runs. Asks where it cannot be taken back, and says afterwards what was done.
import { html, useState } from "../html.js";
import { get, jobPath, post, remove, requestKey, runPath } from "../api.js";
import { fromLocalInput, MINE, moment, zoneOf } from "../time.js";
import { cut, nameOf } from "../text.js";
import { refuses } from "../me.js";
import { go } from "../router.js";
import { Confirm, show } from "./dialog.js";
import { complain, say } from "./toasts.js";

const called = (job) => cut(nameOf(job), 60);

const ON_A_PHONE = matchMedia("(max-width: 700px)"); // where a thumb may have slipped

export function runNow(job, how = {}) {
  if (refuses("operator")) return Promise.resolve(null);
  if (!ON_A_PHONE.matches) return start(job, how);
  show(Confirm, {
    title: `Run ${called(job)} now?`,
    verb: "Run now",
    act: () => start(job, how),
    children: html`<p>It runs once, beside its schedule.</p>`,
  });
  return Promise.resolve(null);
}

async function start(job, { downstream = false }) {
  try {
    const body = downstream ? { downstream } : undefined;
    const { run_id } = await post(`${jobPath(job.job_id)}/run`, body, { headers: { "Idempotency-Key": requestKey() } });
    say(`Started ${called(job)}${downstream ? " and what follows it" : ""}.`, { href: runPath(run_id), label: "Open the run" });
    return run_id;
  } catch (error) {
    complain(error);
    return null;
  }
}

export async function resume(job, done = () => {}) {
  if (refuses("operator")) return;
  try {
    const changed = await post(`${jobPath(job.job_id)}/resume`);
    say(`Resumed ${called(job)}.`, { label: "Undo", action: () => pause(job, {}, done) });
    done(changed);
  } catch (error) {
    complain(error);
  }
}

async function pause(job, how, done) {
  const changed = await post(`${jobPath(job.job_id)}/pause`, how);
  say(`Paused ${called(job)}.`, { label: "Undo", action: () => resume(job, done) });
  done(changed);
}

export function askPause(job, done = () => {}) {
  if (refuses("operator")) return;
  show(PauseDialog, { job, done });
}

function PauseDialog({ job, done }) {
  const [note, setNote] = useState("");
  const [until, setUntil] = useState("");
  const act = () => pause(job, { ...(note.trim() && { note: note.trim() }), ...(until && { until: fromLocalInput(until) }) }, done);
  return html`<${Confirm}
    title="Pause ${called(job)}?"
    verb="Pause"
    act=${act}
    fields=${html`<label class="field"
        ><span>Note <em>why, for the next person</em></span>
        <input type="text" value=${note} maxlength="500" onInput=${(event) => setNote(event.target.value)} />
      </label>
      <label class="field"
        ><span>Until <em>optional, ${MINE}</em></span>
        <input type="datetime-local" step="1" value=${until} onInput=${(event) => setUntil(event.target.value)} />
      </label>`}
  >
    <p>It makes no runs until it is resumed, and what passes meanwhile is not made up for. What runs now goes on.</p>
  <//>`;
}

export function askDelete(job, done = () => go("/jobs")) {
  if (refuses("editor")) return;
  show(DeleteDialog, { job, done });
}

function DeleteDialog({ job, done }) {
  const [cancel, setCancel] = useState(false);
  const act = async () => {
    await remove(jobPath(job.job_id), { cancel_running: cancel });
    say(`Deleted ${called(job)}. Its history stays.`);
    done();
  };
  return html`<${Confirm}
    title="Delete ${called(job)}?"
    verb="Delete the job"
    danger
    act=${act}
    fields=${html`<label class="check"
      ><input type="checkbox" checked=${cancel} onChange=${(event) => setCancel(event.target.checked)} /> Cancel what runs now</label
    >`}
  >
    <p>Its coming runs are dropped. This cannot be taken back; to stop it for a while, pause it.</p>
  <//>`;
}

export function askSkip(job, at, done = () => {}) {
  if (refuses("operator")) return;
  show(SkipDialog, { job, at, done });
}

function SkipDialog({ job, at, done }) {
  const [note, setNote] = useState("");
  const act = async () => {
    await post(`${jobPath(job.job_id)}/skip`, { at, ...(note.trim() && { note: note.trim() }) });
    say(`${called(job)} will skip ${moment(at, zoneOf(job.tz))}.`, { label: "Undo", action: () => unskip(job, at, done) });
    done();
  };
  return html`<${Confirm}
    title="Skip this time?"
    verb="Skip it"
    act=${act}
    fields=${html`<label class="field"
      ><span>Note <em>optional</em></span>
      <input type="text" value=${note} maxlength="500" onInput=${(event) => setNote(event.target.value)} />
    </label>`}
  >
    <p><strong>${called(job)}</strong> does not run at ${moment(at, zoneOf(job.tz))} ${zoneOf(job.tz)}. Other times stay.</p>
  <//>`;
}

export async function unskip(job, at, done = () => {}) {
  try {
    await post(`${jobPath(job.job_id)}/skip`, { at, undo: true });
    say(`${called(job)} will run at ${moment(at, zoneOf(job.tz))} after all.`);
    done();
  } catch (error) {
    complain(error);
  }
}

export function askCancel(run, done = () => {}) {
  if (refuses("operator")) return;
  const act = async () => {
    const after = await post(`${runPath(run.run_id)}/cancel`);
    say(after.status === "CANCELLED" ? "Cancelled." : "Its worker was asked to stop.");
    done(after);
  };
  show(Confirm, {
    title: "Cancel this run?",
    verb: "Cancel the run",
    danger: true,
    act,
    children: html`<p>A run that has not begun never will. One that runs is asked to stop; what it did already stays done.</p>`,
  });
}

export async function rerun(run) {
  if (refuses("operator")) return null;
  try {
    const { run_id } = await post(`${runPath(run.run_id)}/rerun`, undefined, { headers: { "Idempotency-Key": requestKey() } });
    say("A new run of the same was started.", { href: runPath(run_id), label: "Open it" });
    return run_id;
  } catch (error) {
    complain(error);
    return null;
  }
}

export async function clone(job) {
  if (refuses("editor")) return;
  try {
    const made = await post(`${jobPath(job.job_id)}/clone`, undefined, { headers: { "Idempotency-Key": requestKey() } });
    say(`Cloned ${called(job)}; the copy is paused.`);
    go(jobPath(made.job_id));
  } catch (error) {
    complain(error);
  }
}

export function askRequeue(ids, done = () => {}) {
  if (refuses("operator")) return;
  const act = async () => {
    const { count } = await post("/dead-letters/requeue", { ids });
    say(count === 1 ? "Sent back: the same run goes on." : `Sent ${count} back.`);
    done();
  };
  show(Confirm, {
    title: ids.length === 1 ? "Send this run back?" : `Send ${ids.length} runs back?`,
    verb: "Requeue",
    act,
    children: html`<p>The same run goes on under the same idempotency key, with all its tries again.</p>`,
  });
}

export function askDiscard(ids, done = () => {}) {
  if (refuses("operator")) return;
  const act = async () => {
    const { count } = await post("/dead-letters/discard", { ids });
    say(count === 1 ? "Discarded; its history stays." : `Discarded ${count}; their history stays.`);
    done();
  };
  show(Confirm, {
    title: ids.length === 1 ? "Discard this dead letter?" : `Discard ${ids.length} dead letters?`,
    verb: "Discard",
    danger: true,
    act,
    children: html`<p>Nobody will be asked to look at it again. History keeps what happened. This cannot be taken back.</p>`,
  });
}

export const readJob = (id, signal) => get(jobPath(id), undefined, signal);
