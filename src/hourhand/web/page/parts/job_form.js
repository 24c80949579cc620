// A job as a form, and back: what people type <-> the API's document. The server says what is wrong with it.
import { html, useId } from "../html.js";
import { fromLocalInput, MINE, toLocalInput } from "../time.js";

export const EMPTY = {
  name: "", key: "", tags: "", kind: "cron", cron: "0 9 * * *", tz: MINE, gap: "after", fold: "auto", every: "15m", at: "",
  after: "", wait: "1d", starts_at: "", ends_at: "", max_runs: "", target: "http", url: "", method: "POST", headers: "", target_timeout: "",
  function: "", argv: "", payload: "", priority: "MEDIUM", pool: "default", timeout: "5m", delivery: "at_least_once",
  retry_max: "3", retry_first: "1s", retry_factor: "2", retry_max_delay: "10m", concurrency: "1", overlap: "queue_one",
  misfire: "run_once", grace: "1m", limit: "100", jitter: "0s",
};

export function fromDocument(job) {
  const target = job.target || {};
  return {
    ...EMPTY,
    name: job.name || "",
    key: job.key || "",
    tags: (job.tags || []).join(", "),
    kind: job.cron ? "cron" : job.every ? "every" : job.after?.length ? "after" : "at",
    cron: job.cron || EMPTY.cron,
    tz: job.tz || "UTC",
    gap: job.dst?.gap || "after",
    fold: job.dst?.fold || "auto",
    every: job.every || EMPTY.every,
    at: toLocalInput(job.at),
    after: (job.after || []).join(", "),
    wait: job.wait || EMPTY.wait,
    starts_at: toLocalInput(job.starts_at),
    ends_at: toLocalInput(job.ends_at),
    max_runs: job.max_runs ?? "",
    target: target.type || "http",
    url: target.url || "",
    method: target.method || "POST",
    headers: Object.entries(target.headers || {}).map(([name, value]) => `${name}: ${value}`).join("\n"),
    target_timeout: target.timeout || "",
    function: target.function || "",
    argv: (target.argv || []).join("\n"),
    phase: job.phase,
    payload: job.payload === null ? "" : JSON.stringify(job.payload, null, 2),
    priority: job.priority,
    pool: job.pool,
    timeout: job.timeout,
    delivery: job.delivery,
    retry_max: String(job.retry.max),
    retry_first: job.retry.first,
    retry_factor: String(job.retry.factor),
    retry_max_delay: job.retry.max_delay,
    concurrency: String(job.concurrency),
    overlap: job.overlap,
    misfire: job.misfire.policy,
    grace: job.misfire.grace,
    limit: String(job.misfire.limit),
    jitter: job.jitter,
  };
}

// The schedule alone, as a preview takes it; null where there is nothing to preview.
export function scheduleOf(form) {
  if (form.kind === "cron") return form.cron.trim() ? { cron: form.cron.trim(), tz: form.tz.trim() || "UTC", dst: { gap: form.gap, fold: form.fold } } : null;
  if (form.kind === "every") return form.every.trim() ? { every: form.every.trim(), ...(form.phase && { phase: form.phase }) } : null;
  return null;
}

// The whole document; throws in words where the form itself cannot be read.
export function toDocument(form) {
  return {
    name: form.name.trim(),
    key: form.key.trim() || null,
    tags: words(form.tags),
    ...timing(form),
    starts_at: fromLocalInput(form.starts_at),
    ends_at: fromLocalInput(form.ends_at),
    max_runs: form.max_runs === "" ? null : whole(form.max_runs),
    target: target(form),
    payload: payload(form.payload),
    priority: form.priority,
    pool: form.pool.trim(),
    timeout: form.timeout.trim(),
    delivery: form.delivery,
    retry: { max: whole(form.retry_max), first: form.retry_first, factor: Number(form.retry_factor), max_delay: form.retry_max_delay },
    concurrency: form.concurrency.trim() === "unlimited" ? "unlimited" : whole(form.concurrency),
    overlap: form.overlap,
    misfire: { policy: form.misfire, grace: form.grace, limit: whole(form.limit) },
    jitter: form.jitter.trim(),
  };
}

// What a changed form asks to change: fields that the person did not touch are not sent.
export function changesOf(before, after) {
  const old = toDocument(before);
  const fresh = toDocument(after);
  const names = Object.keys(fresh).filter((name) => JSON.stringify(old[name]) !== JSON.stringify(fresh[name]));
  const changes = Object.fromEntries(names.map((name) => [name, fresh[name]]));
  if (changes.target && changes.target.type === old.target.type && changes.target.headers)
    for (const name of Object.keys(old.target.headers || {})) if (!(name in changes.target.headers)) changes.target.headers[name] = null;
  return changes;
}

function timing(form) {
  switch (form.kind) {
    case "cron":
      return { cron: form.cron.trim(), tz: form.tz.trim() || "UTC", dst: { gap: form.gap, fold: form.fold } };
    case "every":
      return { every: form.every.trim(), ...(form.phase && { phase: form.phase }) };
    case "after":
      return { after: words(form.after), wait: form.wait.trim() };
    default:
      return { at: fromLocalInput(form.at) };
  }
}

function target(form) {
  if (form.target === "python") return { type: "python", function: form.function.trim() };
  if (form.target === "shell") return { type: "shell", argv: form.argv.split("\n").filter((line) => line !== "") };
  const found = { type: "http", url: form.url.trim(), method: form.method, headers: headers(form.headers) };
  return form.target_timeout.trim() ? { ...found, timeout: form.target_timeout.trim() } : found;
}

function headers(text) {
  const found = {};
  for (const line of text.split("\n").filter((one) => one.trim())) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new FormError("/target/headers", `A header needs a name, a colon and a value: ${line}`);
    found[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
  }
  return found;
}

function payload(text) {
  if (!text.trim()) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FormError("/payload", `The payload is not JSON: ${error.message}`);
  }
}

const words = (text) => text.split(",").map((word) => word.trim()).filter(Boolean);
const whole = (text) => (/^\d+$/.test(String(text).trim()) ? Number(text) : String(text));

export class FormError extends Error {
  constructor(pointer, message) {
    super(message);
    this.faults = [{ pointer, expected: message }];
  }
}

// --- what it looks like

const POINTERS = {
  headers: "/target/headers", url: "/target/url", function: "/target/function", argv: "/target/argv", target_timeout: "/target/timeout",
  retry_max: "/retry/max", retry_first: "/retry/first", retry_factor: "/retry/factor", retry_max_delay: "/retry/max_delay",
  misfire: "/misfire/policy", grace: "/misfire/grace", limit: "/misfire/limit", gap: "/dst/gap", fold: "/dst/fold",
};

function faultsOf(faults, name) {
  const pointer = POINTERS[name] || `/${name}`;
  return faults.filter((fault) => fault.pointer === pointer || fault.pointer?.startsWith(`${pointer}/`));
}

export function Field({ form, name, label, hint, change, faults = [], as = "input", options, ...rest }) {
  const id = useId();
  const mine = faultsOf(faults, name);
  const shared = {
    id,
    name,
    value: form[name],
    "aria-invalid": mine.length ? "true" : undefined,
    "aria-describedby": [hint && `${id}-hint`, mine.length && `${id}-error`].filter(Boolean).join(" ") || undefined,
    onInput: (event) => change({ [name]: event.target.value }),
    ...rest,
  };
  return html`<div class="field ${mine.length ? "wrong" : ""}">
    <label for=${id}>${label}</label>
    ${as === "select"
      ? html`<select ...${shared}>${options.map((one) => html`<option value=${one} selected=${one === form[name]}>${one}</option>`)}</select>`
      : as === "textarea"
        ? html`<textarea spellcheck="false" ...${shared}></textarea>`
        : html`<input type="text" autocomplete="off" spellcheck="false" ...${shared} />`}
    ${hint && html`<span class="hint" id="${id}-hint">${hint}</span>`}
    ${mine.length > 0 && html`<span class="error" id="${id}-error">${mine.map(faultText).join(" ")}</span>`}
  </div>`;
}

export function faultText(fault) {
  const got = fault.got ? `, got ${fault.got}` : "";
  return `Expected ${fault.expected}${got}.${fault.hint ? ` ${fault.hint}` : ""}`;
}

export function Choice({ form, name, label, options, change }) {
  const id = useId();
  return html`<fieldset class="choice">
    <legend>${label}</legend>
    ${options.map(
      ([value, text]) => html`<label key=${value} class=${form[name] === value ? "chosen" : ""}>
        <input type="radio" name=${id} value=${value} checked=${form[name] === value} onChange=${() => change({ [name]: value })} />${text}
      </label>`,
    )}
  </fieldset>`;
}

const ZONES = typeof Intl.supportedValuesOf === "function" ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC", MINE];

export function ScheduleFields(props) {
  const { form, change } = props;
  const kinds = [["cron", "Cron"], ["every", "Every"], ["at", "Once"], ["after", "After others"]];
  return html`<${Choice} form=${form} name="kind" label="When" options=${kinds} change=${change} />
    ${form.kind === "cron" &&
    html`<div class="pair">
        <${Field} ...${props} name="cron" label="Cron expression" hint="5 fields, 6 with seconds in front, or @daily" class="mono" />
        <${Field} ...${props} name="tz" label="Zone" list="zones" hint="It is read in this zone" />
      </div>
      <datalist id="zones">${ZONES.map((zone) => html`<option value=${zone}></option>`)}</datalist>`}
    ${form.kind === "every" && html`<${Field} ...${props} name="every" label="Every" hint="Such as 30s, 15m, 1h30m" />`}
    ${form.kind === "at" && html`<${Field} ...${props} name="at" label="At" type="datetime-local" step="1" hint="In ${MINE}" />`}
    ${form.kind === "after" && html`<${Field} ...${props} name="after" label="After these jobs" hint="Their ids or keys, parted by commas" class="mono" /><${Field} ...${props} name="wait" label="Wait at most" hint="For the last of them, once the first has ended" />`}`;
}

export function TargetFields(props) {
  const { form, change } = props;
  const kinds = [["http", "HTTP call"], ["python", "Python function"], ["shell", "Command"]];
  return html`<${Choice} form=${form} name="target" label="What" options=${kinds} change=${change} />
    ${form.target === "http" &&
    html`<div class="pair short-first">
        <${Field} ...${props} name="method" label="Method" as="select" options=${["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"]} />
        <${Field} ...${props} name="url" label="URL" type="url" placeholder="https://example.com/hook" inputmode="url" />
      </div>
      <${Field} ...${props} name="headers" label="Headers" as="textarea" rows="2" hint="One a line, as Name: value" class="mono" />`}
    ${form.target === "python" && html`<${Field} ...${props} name="function" label="Function" placeholder="app.tasks:daily_report" hint="A worker must have imported it" class="mono" />`}
    ${form.target === "shell" && html`<${Field} ...${props} name="argv" label="Command and arguments" as="textarea" rows="3" hint="One word a line; workers must allow it" class="mono" />`}
    <${Field} ...${props} name="payload" label="Payload" as="textarea" rows="4" hint="JSON; what the target gets" class="mono" />`;
}

export function MoreFields(props) {
  return html`<details class="more">
    <summary>Policies and limits</summary>
    <div class="grid-form">
      <${Field} ...${props} name="key" label="Key" hint="A name of your own, unique" />
      <${Field} ...${props} name="tags" label="Tags" hint="Parted by commas" />
      <${Field} ...${props} name="priority" label="Priority" as="select" options=${["HIGH", "MEDIUM", "LOW"]} />
      <${Field} ...${props} name="pool" label="Pool" hint="The workers that run it" />
      <${Field} ...${props} name="timeout" label="Timeout" hint="Of one attempt" />
      <${Field} ...${props} name="delivery" label="Delivery" as="select" options=${["at_least_once", "at_most_once"]} />
      <${Field} ...${props} name="retry_max" label="Retries" inputmode="numeric" />
      <${Field} ...${props} name="retry_first" label="First pause" />
      <${Field} ...${props} name="retry_factor" label="Longer by a factor of" inputmode="decimal" />
      <${Field} ...${props} name="retry_max_delay" label="Longest pause" />
      <${Field} ...${props} name="concurrency" label="Runs at once" hint='A number, or "unlimited"' />
      <${Field} ...${props} name="overlap" label="When it still runs" as="select" options=${["queue_one", "queue", "skip", "cancel_running"]} />
      <${Field} ...${props} name="misfire" label="Missed times" as="select" options=${["run_once", "skip", "catch_up"]} />
      <${Field} ...${props} name="grace" label="Late by at most" hint="Still counts as on time" />
      <${Field} ...${props} name="limit" label="Made up for at most" inputmode="numeric" />
      <${Field} ...${props} name="jitter" label="Jitter" hint="Spreads the start, up to 30s" />
      <${Field} ...${props} name="gap" label="DST: a time that is left out" as="select" options=${["after", "shift", "skip"]} />
      <${Field} ...${props} name="fold" label="DST: a time that comes twice" as="select" options=${["auto", "first", "second", "both"]} />
      <${Field} ...${props} name="starts_at" label="Starts at" type="datetime-local" step="1" hint=${MINE} />
      <${Field} ...${props} name="ends_at" label="Ends at" type="datetime-local" step="1" hint=${MINE} />
      <${Field} ...${props} name="max_runs" label="Runs at most" inputmode="numeric" />
    </div>
  </details>`;
}
