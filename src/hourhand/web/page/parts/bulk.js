// The same done to many jobs: those that are picked, or every one that the filter matches, page by page.
import { html, useRef, useState } from "../html.js";
import { get, jobPath, post, remove, requestKey } from "../api.js";
import { only } from "../me.js";
import { number, plural } from "../text.js";
import { Confirm, show } from "./dialog.js";
import { say } from "./toasts.js";

const PAGE = 200;
const AT_ONCE = 4;

const ACTIONS = {
  pause: { verb: "Pause", done: "Paused", act: (id, note) => post(`${jobPath(id)}/pause`, note ? { note } : {}), wants: (job) => job.state === "active" },
  resume: { verb: "Resume", done: "Resumed", act: (id) => post(`${jobPath(id)}/resume`), wants: (job) => job.state === "paused" },
  run: { verb: "Run now", done: "Started", act: (id) => post(`${jobPath(id)}/run`, undefined, { headers: { "Idempotency-Key": requestKey() } }), wants: () => true },
  delete: { verb: "Delete", done: "Deleted", act: (id) => remove(jobPath(id)), wants: () => true, danger: true, role: "editor" },
};

export function Bulk({ jobs, chosen, matching, filter, filtered, setMatching, clear, done, more }) {
  const [work, setWork] = useState(null);
  const stop = useRef(false);
  if (work) return html`<${Progress} work=${work} stop=${() => (stop.current = true)} />`;
  if (!chosen.size && !matching) return null;
  const count = matching ? null : chosen.size;
  const what = matching ? (filtered ? "every job that matches the filter" : "every job") : plural(count, "job");

  const start = (name, note) => {
    stop.current = false;
    const all = matching ? pages(filter) : [jobs.filter((job) => chosen.has(job.job_id))];
    apply(ACTIONS[name], all, note, stop, setWork).then((result) => {
      setWork(null);
      say(`${ACTIONS[name].done} ${plural(result.done, "job")}${result.failed ? `; ${number(result.failed)} could not be` : ""}${result.stopped ? "; stopped there" : ""}.`, { tone: result.failed ? "fail" : "ok" });
      clear();
      done();
    });
  };
  const askFirst = (name) => show(BulkDialog, { action: ACTIONS[name], name, what, matching, start });
  return html`<div class="bulk" role="region" aria-label="Selected jobs">
    <span role="status">${matching ? `Selected ${what}` : `${plural(count, "job")} selected`}</span>
    ${!matching && more && jobs.length === chosen.size && html`<button type="button" class="link" onClick=${() => setMatching(true)}>Select ${filtered ? "all that match" : "all jobs"}</button>`}
    <span class="grow"></span>
    ${Object.entries(ACTIONS).map(([name, action]) => html`<button type="button" key=${name} class="small ${action.danger ? "danger" : ""}" onClick=${() => askFirst(name)} ...${only(action.role || "operator")}>${action.verb}</button>`)}
    <button type="button" class="small" onClick=${clear}>Clear</button>
  </div>`;
}

function BulkDialog({ action, name, what, matching, start }) {
  const [note, setNote] = useState("");
  return html`<${Confirm}
    title="${action.verb}: ${what}?"
    verb=${action.verb}
    danger=${action.danger}
    typed=${matching && name !== "resume" ? name : null}
    act=${async () => start(name, note.trim())}
    fields=${name === "pause" && html`<label class="field"><span>Note <em>why, for the next person</em></span><input type="text" maxlength="500" value=${note} onInput=${(event) => setNote(event.target.value)} /></label>`}
  >
    <p>${action.danger ? "Coming runs are dropped. This cannot be taken back." : "Jobs that are already so are left alone."}${matching ? " It goes page by page, and can be stopped on the way." : ""}</p>
  <//>`;
}

function Progress({ work, stop }) {
  return html`<div class="bulk" role="status">
    <progress aria-label="Progress"></progress>
    <span class="grow">${number(work.done)} done${work.failed ? `, ${number(work.failed)} failed` : ""}</span>
    <button type="button" class="small" onClick=${stop}>Stop</button>
  </div>`;
}

async function* pages(filter) {
  let cursor = null;
  do {
    const page = await get("/jobs", { ...filter, cursor, limit: PAGE, payload: "false" });
    yield page.data;
    cursor = page.next_cursor;
  } while (cursor);
}

async function apply(action, all, note, stop, tell) {
  const result = { done: 0, failed: 0, stopped: false };
  tell({ ...result });
  try {
    for await (const jobs of all) {
      const queue = jobs.filter(action.wants);
      const one = async () => {
        while (queue.length && !stop.current) {
          const job = queue.shift();
          try {
            await action.act(job.job_id, note);
            result.done += 1;
          } catch {
            result.failed += 1;
          }
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, one));
      tell({ ...result });
      if (stop.current) return { ...result, stopped: true };
    }
  } catch {
    return { ...result, stopped: true };
  }
  return result;
}
