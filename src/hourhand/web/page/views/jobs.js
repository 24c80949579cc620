// Jobs: a filter, a page of them by cursor with the strip of their last runs, and what one does to many at once.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get, jobPath } from "../api.js";
import { useLoad, useThrottled } from "../load.js";
import { useLive } from "../live.js";
import { ButtonLink, only } from "../me.js";
import { ask, place } from "../router.js";
import { cut, nameOf, plural, scheduleText } from "../text.js";
import { askPause, resume, runNow } from "../parts/actions.js";
import { Bulk } from "../parts/bulk.js";
import { Icon } from "../parts/icons.js";
import { focusedRow, useKeys } from "../parts/keys.js";
import { Pager } from "../parts/pager.js";
import { Failure, Loading, Nothing } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Strip } from "../parts/strip.js";
import { Ago, When } from "../parts/when.js";

const PAGE = 50;
const STRIP = 30;
const LOOKS = 10; // requests for one page, at most
const REFRESH_MS = 1500;
const TYPING_MS = 200;

export function filterOf(query) {
  return {
    name: query.get("name") || "",
    tag: query.get("tag") || "",
    state: query.get("state") || "",
    failing: query.get("failing") === "true",
  };
}

export function Jobs() {
  const { query } = place.value;
  const filter = filterOf(query);
  const cursor = query.get("cursor");
  const address = query.toString();
  const page = useLoad((signal) => readPage(filter, cursor, signal), [address], { keep: true });
  const jobs = page.data?.data || [];
  const [strips, patchStrips] = useStrips(jobs);
  const [chosen, setChosen] = useState(() => new Set());
  const [matching, setMatching] = useState(false);
  const [fresh, setFresh] = useState(0);
  const clear = () => (setChosen(new Set()), setMatching(false));
  useEffect(clear, [address]);
  useEffect(() => setFresh(0), [page.busy]); // a new reading has them; a changed row does not
  // After a break anything may have happened: what could not be read is read, what is there is brought up to date.
  const again = (merge) => (page.error ? page.reload() : readPage(filter, cursor).then((fresh) => merge(fresh.data), () => {}));
  useChanges(jobs, page, patchStrips, () => setFresh((count) => count + 1), again);

  const toggle = (id) => {
    setMatching(false);
    setChosen((was) => {
      const next = new Set(was);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  };
  const focused = () => jobs.find((job) => job.job_id === focusedRow());
  const replace = (changed) => page.change((was) => was && { ...was, data: was.data.map((job) => (job.job_id === changed.job_id ? changed : job)) });
  useKeys({
    x: () => (focused() ? toggle(focused().job_id) : false),
    p: () => (focused() ? (focused().state === "paused" ? resume(focused(), replace) : askPause(focused(), replace)) : false),
    r: () => (focused() ? runNow(focused()) : false),
    Escape: () => (chosen.size || matching ? clear() : false),
  });

  const filtered = Boolean(filter.name || filter.tag || filter.state || filter.failing);
  return html`<div class="title">
      <h1 tabindex="-1">Jobs</h1>
      <${ButtonLink} role="editor" kind="primary" href="/jobs/new"><${Icon} name="plus" />Create a job<//>
    </div>
    <${Filters} filter=${filter} jobs=${jobs} />
    <${Bulk} jobs=${jobs} chosen=${chosen} matching=${matching} filter=${filter} filtered=${filtered} setMatching=${setMatching} clear=${clear} done=${page.reload} more=${Boolean(page.data?.next_cursor || cursor)} />
    ${fresh > 0 && html`<p class="fresh"><button type="button" onClick=${() => (cursor ? ask({ cursor: null }) : page.reload())}>${plural(fresh, "new job")}: show</button></p>`}
    ${page.error && html`<${Failure} error=${page.error} retry=${page.reload} />`}
    ${page.data?.partial && html`<p class="note warn" role="status">Some databases do not answer, and theirs are not here: ${page.data.partial.join(", ")}.</p>`}
    ${!page.data && !page.error && html`<${Loading} slow=${page.slow} rows=${12} />`}
    ${page.data && (!page.error || page.data.of === address) && html`<${List} jobs=${jobs} strips=${strips} chosen=${chosen} setChosen=${setChosen} matching=${matching} toggle=${toggle} filtered=${filtered} cursor=${cursor} next=${page.data.next_cursor} busy=${page.busy} replace=${replace} />`}
    ${page.data && html`<${Pager} next=${page.data.next_cursor} label="Pages of jobs" />`}`;
}

// A page of the API may hold less than was asked for although there is more: it looks at so many jobs and no more.
async function readPage(filter, cursor, signal) {
  const found = { data: [], next_cursor: cursor, of: place.peek().query.toString() };
  for (let tries = 0; tries < LOOKS; tries += 1) {
    const query = { ...filter, cursor: found.next_cursor, limit: PAGE - found.data.length, payload: "false" };
    const page = await get("/jobs", query, signal);
    Object.assign(found, page, { data: [...found.data, ...page.data] });
    if (!page.next_cursor || found.data.length >= PAGE) break;
  }
  return found;
}

function List({ jobs, strips, chosen, setChosen, matching, toggle, filtered, cursor, next, busy, replace }) {
  if (!jobs.length) return html`<${NoJobs} filtered=${filtered} cursor=${cursor} next=${next} />`;
  const all = jobs.every((job) => chosen.has(job.job_id));
  const chooseAll = () => setChosen(all ? new Set() : new Set(jobs.map((job) => job.job_id)));
  return html`<div class="table-wrap" aria-busy=${busy}>
    <table class="list jobs">
      <caption class="hidden">Jobs, newest first</caption>
      <thead>
        <tr>
          <th class="pick"><input type="checkbox" aria-label="Select all on this page" checked=${all || matching} onChange=${chooseAll} /></th>
          <th>Name</th><th>State</th><th>Schedule</th><th>Last runs</th><th>Next</th><th class="acts"><span class="hidden">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        ${jobs.map((job) => html`<${Row} key=${job.job_id} job=${job} strip=${strips.get(job.job_id)} picked=${matching || chosen.has(job.job_id)} toggle=${toggle} replace=${replace} />`)}
      </tbody>
    </table>
  </div>`;
}

function Row({ job, strip, picked, toggle, replace }) {
  const name = nameOf(job);
  return html`<tr data-row=${job.job_id} class=${picked ? "picked" : ""}>
    <td class="pick"><input type="checkbox" aria-label="Select ${cut(name, 80)}" checked=${picked} onChange=${() => toggle(job.job_id)} /></td>
    <td class="name">
      <a class="row-link" href=${jobPath(job.job_id)} title=${name.length > 60 ? cut(name, 400) : undefined}><bdi>${cut(name, 200)}</bdi></a>
      ${job.tags.length > 0 && html`<span class="tags">${job.tags.slice(0, 4).map((tag) => html`<button type="button" class="tag" key=${tag} onClick=${() => ask({ tag, cursor: null })}><bdi>${cut(tag, 30)}</bdi></button>`)}</span>`}
      ${job.note && job.state === "paused" && html`<span class="pause-note"><bdi>${cut(job.note, 120)}</bdi></span>`}
    </td>
    <td class="state"><${Status} state=${job.state} /></td>
    <td class="schedule" title=${job.schedule_in_words}><code>${cut(scheduleText(job), 40)}</code><span class="words">${cut(job.schedule_in_words, 80)}</span></td>
    <td class="runs"><${Strip} strip=${strip} size=${STRIP} /></td>
    <td class="next">${job.next_fire_time ? html`<${Ago} at=${job.next_fire_time} zone=${job.tz} coming /><span class="at"><${When} at=${job.next_fire_time} zone=${job.tz} /></span>` : html`<span class="faint">–</span>`}</td>
    <td class="acts">
      <button type="button" class="quiet" aria-label="Run ${cut(name, 60)} now" title="Run now" onClick=${() => runNow(job)} ...${only("operator")}><${Icon} name="play" /></button>
      ${job.state === "paused"
        ? html`<button type="button" class="quiet" aria-label="Resume ${cut(name, 60)}" title="Resume" onClick=${() => resume(job, replace)} ...${only("operator")}><${Icon} name="again" /></button>`
        : html`<button type="button" class="quiet" aria-label="Pause ${cut(name, 60)}" title="Pause" disabled=${job.state === "completed"} onClick=${() => askPause(job, replace)} ...${only("operator")}><${Icon} name="pause" /></button>`}
    </td>
  </tr>`;
}

function NoJobs({ filtered, cursor, next }) {
  if (next) return html`<${Nothing} title="Nothing here matches"><p>There are more jobs to look at: go on to the next page.</p><//>`;
  if (cursor) return html`<${Nothing} title="No more jobs"><p><button type="button" onClick=${() => ask({ cursor: null })}>First page</button></p><//>`;
  if (filtered)
    return html`<${Nothing} title="Nothing matches">
      <p>No job fits this filter.</p>
      <p><button type="button" onClick=${() => ask({ name: null, tag: null, state: null, failing: null, cursor: null })}>Clear the filter</button></p>
    <//>`;
  return html`<${Nothing} title="No jobs yet"><p><${ButtonLink} role="editor" kind="primary" href="/jobs/new">Create the first<//></p><//>`;
}

function Filters({ filter, jobs }) {
  const search = useRef(null);
  const [name, setName] = useState(filter.name);
  const [tag, setTag] = useState(filter.tag);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []); // what was typed here is no other view's address
  useEffect(() => setName(filter.name), [filter.name]);
  useEffect(() => setTag(filter.tag), [filter.tag]);
  useKeys({ "/": () => search.current.focus() });
  useEffect(() => {
    if (place.value.query.has("focus")) {
      search.current.focus();
      ask({ focus: null }, { replace: true });
    }
  }, []);
  const later = (change) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => ask({ ...change, cursor: null }, { replace: true }), TYPING_MS);
  };
  const names = useMemo(() => [...new Set(jobs.map((job) => job.name).filter(Boolean))].slice(0, 50).map((one) => cut(one, 200)), [jobs]);
  const tags = useMemo(() => [...new Set(jobs.flatMap((job) => job.tags))].slice(0, 50), [jobs]);
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label class="grow"><span class="hidden">Name begins with</span>
      <span class="with-icon"><${Icon} name="search" /><input ref=${search} type="search" list="job-names" maxlength="200" placeholder="Name begins with…  ( / )" value=${name} onInput=${(event) => (setName(event.target.value), later({ name: event.target.value }))} /></span>
    </label>
    <datalist id="job-names">${names.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>
    <label><span class="hidden">Tag</span><input type="text" list="job-tags" maxlength="200" placeholder="Tag" value=${tag} onInput=${(event) => (setTag(event.target.value), later({ tag: event.target.value }))} /></label>
    <datalist id="job-tags">${tags.map((one) => html`<option value=${one} key=${one}></option>`)}</datalist>
    <label><span class="hidden">State</span>
      <select value=${filter.state} onChange=${(event) => ask({ state: event.target.value, cursor: null })}>
        ${["", "active", "paused", "completed"].map((one) => html`<option value=${one} selected=${one === filter.state} key=${one}>${one || "Any state"}</option>`)}
      </select>
    </label>
    <label class="check"><input type="checkbox" checked=${filter.failing} onChange=${(event) => ask({ failing: event.target.checked, cursor: null })} />Failing</label>
  </form>`;
}

// The strips of a page: one request for all of them, and later only for those that something happened to.
function useStrips(jobs) {
  const [strips, setStrips] = useState(() => new Map());
  const ids = jobs.map((job) => job.job_id);
  const read = async (wanted, signal) => {
    if (!wanted.length) return;
    const { data } = await get("/jobs/strips", { job_id: wanted, limit: STRIP }, signal);
    setStrips((was) => new Map([...ids.filter((id) => was.has(id)).map((id) => [id, was.get(id)]), ...data.map((one) => [one.job_id, one])]));
  };
  useEffect(() => {
    const controller = new AbortController();
    read(ids, controller.signal).catch(() => {});
    return () => controller.abort();
  }, [ids.join()]);
  return [strips, (wanted) => read(wanted).catch(() => {})];
}

// What happened to the jobs on this page, written into their rows: none comes, goes or moves by itself.
function useChanges(jobs, page, patchStrips, counted, again) {
  const dirty = useRef(new Set());
  const changed = useRef(new Set());
  const merge = (fresh) => {
    const byId = new Map(fresh.map((job) => [job.job_id, job]));
    page.change((was) => was && { ...was, data: was.data.map((job) => byId.get(job.job_id) || job) });
  };
  const refresh = useThrottled(async () => {
    const [ran, edited] = [[...dirty.current], [...changed.current]];
    dirty.current = new Set();
    changed.current = new Set();
    patchStrips(ran);
    const found = await Promise.all(edited.slice(0, PAGE).map((id) => get(jobPath(id)).catch(() => null)));
    merge(found.filter(Boolean));
  }, REFRESH_MS);
  useLive((message) => {
    if (message.kind === "job.created") return counted();
    if (message.kind === "reset") again(merge);
    if (message.kind === "reset" || message.kind === "stats") {
      jobs.forEach((job) => dirty.current.add(job.job_id)); // what exactly happened is not told
      return refresh();
    }
    const job = jobs.find((one) => one.job_id === message.job_id);
    if (!job) return undefined;
    if (message.run_id) dirty.current.add(job.job_id);
    else if (message.kind === "job.deleted") return merge([{ ...job, state: "deleted", next_fire_time: null }]);
    else changed.current.add(job.job_id);
    return refresh();
  });
}
