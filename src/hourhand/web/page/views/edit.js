// Create and edit: the form beside what it would mean, and for an edit how the coming times would differ.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get, jobPath, patch, post, requestKey } from "../api.js";
import { useLoad } from "../load.js";
import { only } from "../me.js";
import { go } from "../router.js";
import { cut, nameOf } from "../text.js";
import { changesOf, EMPTY, faultText, Field, fromDocument, MoreFields, scheduleOf, ScheduleFields, TargetFields, toDocument } from "../parts/job_form.js";
import { Preview, usePreview } from "../parts/preview.js";
import { Failure, Loading } from "../parts/states.js";
import { say } from "../parts/toasts.js";

export function Create() {
  return html`<div class="title"><h1 tabindex="-1">Create a job</h1></div><${CreateForm} />`;
}

export function CreateForm({ short = false }) {
  const [key] = useState(requestKey);
  const save = async (form) => {
    const document = toDocument(form);
    const made = await post("/jobs", document, { headers: { "Idempotency-Key": key } });
    say(`Created ${cut(document.name || made.job_id, 60)}.`);
    go(jobPath(made.job_id));
  };
  return html`<${JobForm} initial=${EMPTY} verb="Create the job" save=${save} short=${short} />`;
}

export function Edit({ id }) {
  const job = useLoad((signal) => get(jobPath(id), undefined, signal), [id]);
  const [refused, refuse] = useState(null); // outlives the form, which begins anew with what somebody else made of the job
  if (job.error) return html`<h1 tabindex="-1">Edit</h1><${Failure} error=${job.error} retry=${job.reload} />`;
  if (!job.data) return html`<h1 tabindex="-1">Edit</h1><${Loading} slow=${job.slow} />`;
  return html`<${EditForm} job=${job.data} reload=${job.reload} refused=${refused} refuse=${refuse} key=${job.data.version} />`;
}

function EditForm({ job, reload, refused, refuse }) {
  const initial = useMemo(() => fromDocument(job), [job]);
  const save = async (form) => {
    const changes = changesOf(initial, form);
    if (!Object.keys(changes).length) {
      say("Nothing was changed.");
      return go(jobPath(job.job_id));
    }
    try {
      await patch(jobPath(job.job_id), changes, { headers: { "If-Match": `"${job.version}"` } });
    } catch (error) {
      if (error.status !== 412) throw error;
      refuse(new Error("Somebody changed the job meanwhile. Its present form was read again; what you typed is gone."));
      return reload();
    }
    say(`Saved ${cut(nameOf(job), 60)}.`);
    return go(jobPath(job.job_id));
  };
  return html`<div class="title"><h1 tabindex="-1">Edit <bdi>${cut(nameOf(job), 80)}</bdi></h1></div>
    <${JobForm} initial=${initial} verb="Save" save=${save} back=${jobPath(job.job_id)} refused=${refused} edits />`;
}

function JobForm({ initial, verb, save, back, refused = null, short = false, edits = false }) {
  const [form, setForm] = useState(initial);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(refused);
  const summary = useRef(null);
  const schedule = scheduleOf(form);
  const was = edits ? scheduleOf(initial) : null;
  const shown = usePreview(schedule, was);
  const change = (changes) => setForm((now) => ({ ...now, ...changes }));
  const faults = error?.faults || [];
  const props = { form, change, faults };
  useEffect(() => error && summary.current?.focus(), [error]);

  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await save(form);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return html`<form class="job-form ${short ? "short" : ""}" onSubmit=${submit} novalidate>
    <div class="form-when">
      ${error &&
      html`<div class="note fail" role="alert" tabindex="-1" ref=${summary}>
        <div><p><strong>It was not saved.</strong> ${error.message}</p>
        ${faults.length > 1 && html`<ul>${faults.slice(0, 8).map((fault) => html`<li><code>${fault.pointer}</code> ${faultText(fault)}</li>`)}</ul>`}</div>
      </div>`}
      <${Field} ...${props} name="name" label="Name" maxlength="200" />
      <${ScheduleFields} ...${props} />
    </div>
    <aside class="form-side" aria-label="Preview of the schedule">
      <h2>${edits ? "What would change" : "When it fires"}</h2>
      ${schedule ? html`<${Preview} shown=${shown} />` : html`<p class="faint">${form.kind === "after" ? "It runs when those before it have succeeded." : "It runs once."}</p>`}
    </aside>
    <div class="form-what">
      <${TargetFields} ...${props} />
      <${MoreFields} ...${props} />
      <div class="form-actions">
        <button type="submit" class="primary" disabled=${busy} ...${only("editor")}>${busy ? "Saving…" : verb}</button>
        ${back && html`<a class="button" href=${back}>Leave it</a>`}
      </div>
    </div>
  </form>`;
}
