// Dead letters: by cause, so that one sees whether it is one problem or many; requeued at a pace, with progress.
import { html, useEffect, useState } from "../html.js";
import { get, jobPath, post, runPath } from "../api.js";
import { useLoad } from "../load.js";
import { useLive } from "../live.js";
import { only } from "../me.js";
import { place } from "../router.js";
import { cut, number, plural } from "../text.js";
import { askDiscard, askRequeue } from "../parts/actions.js";
import { Confirm, show } from "../parts/dialog.js";
import { focusedRow, useKeys } from "../parts/keys.js";
import { Pager } from "../parts/pager.js";
import { Replay } from "../parts/replay.js";
import { Failure, Loading, Nothing } from "../parts/states.js";
import { say } from "../parts/toasts.js";
import { Ago, When } from "../parts/when.js";

const GROUPS = 100;
const PAGE = 50;

export function DeadLetters() {
  const error = place.value.query.get("error");
  const [fresh, setFresh] = useState(0);
  useLive((message) => message.kind === "run.failed" && setFresh((count) => count + 1));
  return html`<div class="title">
      <div>
        ${error && html`<p class="crumbs"><a href="/dead-letters">Dead letters</a></p>`}
        <h1 tabindex="-1">${error ? "One cause" : "Dead letters"}</h1>
        <p class="faint">Runs that used up their tries and wait for somebody. Requeued, the same run goes on.</p>
      </div>
    </div>
    ${error ? html`<${Letters} error=${error} fresh=${fresh} seen=${() => setFresh(0)} />` : html`<${Groups} fresh=${fresh} seen=${() => setFresh(0)} />`}`;
}

function Fresh({ count, reload }) {
  if (!count) return null;
  return html`<p class="fresh"><button type="button" onClick=${reload}>${plural(count, "new dead letter")}: show</button></p>`;
}

function Groups({ fresh, seen }) {
  const groups = useLoad((signal) => get("/dead-letters", { group_by: "error", limit: GROUPS }, signal), []);
  const reload = () => (seen(), groups.reload());
  useEffect(seen, []);
  if (groups.error && !groups.data) return html`<${Failure} error=${groups.error} retry=${reload} />`;
  if (!groups.data) return html`<${Loading} slow=${groups.slow} />`;
  const all = groups.data.data;
  if (!all.length) return html`<${Fresh} count=${fresh} reload=${reload} /><${Nothing} title="Nothing here"><p>No run has given up. That is how it should be.</p><//>`;
  const total = all.reduce((sum, group) => sum + group.count, 0);
  return html`<${Fresh} count=${fresh} reload=${reload} />
    <p>${plural(total, "dead letter")} with ${plural(all.length, "cause")}${all.length === GROUPS ? " (the largest)" : ""}.</p>
    <ul class="groups">${all.map((group) => html`<${Group} key=${group.value} group=${group} reload=${reload} />`)}</ul>`;
}

function Group({ group, reload }) {
  const { sample } = group;
  const address = `/dead-letters?error=${encodeURIComponent(group.value)}`;
  return html`<li class="card" data-row=${group.value}>
    <div class="grow">
      <h2><a class="row-link output" href=${address}>${cut(sample.error, 240)}</a></h2>
      <p><strong>${number(group.count)}</strong> ${group.count === 1 ? "run" : "runs"}; last <${Ago} at=${sample.failed_at} /> of <a href=${jobPath(sample.job_id)}><bdi>${cut(sample.job_name || sample.job_id, 80)}</bdi></a></p>
    </div>
    <${GroupActions} error=${group.value} count=${group.count} reload=${reload} />
  </li>`;
}

function GroupActions({ error, count, reload }) {
  const [replaying, setReplaying] = useState(false);
  if (replaying) return html`<${Replay} error=${error} total=${count} done=${() => (setReplaying(false), reload())} />`;
  const discard = () =>
    show(Confirm, {
      title: `Discard ${plural(count, "dead letter")}?`,
      verb: "Discard all",
      danger: true,
      typed: count > 1 ? "discard" : null,
      act: async () => {
        const to = new Date().toISOString();
        let sum = 0;
        for (let more = true; more; ) {
          const answer = await post("/dead-letters/discard", { filter: { error, to } });
          sum += answer.count;
          more = answer.more && answer.count > 0;
        }
        say(`Discarded ${plural(sum, "dead letter")}; their history stays.`);
        reload();
      },
      children: html`<p>Every dead letter with this cause. History keeps what happened. This cannot be taken back.</p>`,
    });
  return html`<div class="actions">
    <button type="button" class="primary" onClick=${() => setReplaying(true)} ...${only("operator")}>Requeue ${count === 1 ? "" : "all"}</button>
    <button type="button" class="danger" onClick=${discard} ...${only("operator")}>Discard ${count === 1 ? "" : "all"}</button>
  </div>`;
}

function Letters({ error, fresh, seen }) {
  const cursor = place.value.query.get("cursor");
  const letters = useLoad((signal) => get("/dead-letters", { error, limit: PAGE, cursor }, signal), [error, cursor], { keep: true });
  const [chosen, setChosen] = useState(() => new Set());
  useEffect(() => setChosen(new Set()), [error, cursor]);
  useEffect(seen, []);
  const reload = () => (seen(), letters.reload());
  const rows = letters.data?.data || [];
  // What was picked while a new reading was under way stays picked; what is no longer there does not.
  useEffect(() => setChosen((was) => new Set(rows.map((row) => row.run_id).filter((id) => was.has(id)))), [letters.data]);
  const toggle = (id) =>
    setChosen((was) => {
      const next = new Set(was);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  useKeys({
    x: () => (focusedRow() ? toggle(focusedRow()) : false),
    r: () => (focusedRow() ? askRequeue([focusedRow()], reload) : false),
    Escape: () => (chosen.size ? setChosen(new Set()) : false),
  });
  if (!letters.data) {
    if (letters.error) return html`<${Failure} error=${letters.error} retry=${reload} />`;
    return html`<${Loading} slow=${letters.slow} />`;
  }
  if (!rows.length) return html`<${Nothing} title="Nothing left"><p>All with this cause were requeued or discarded. <a href="/dead-letters">See the others</a></p><//>`;
  const ids = [...chosen];
  const all = rows.every((row) => chosen.has(row.run_id));
  return html`<${Fresh} count=${fresh} reload=${reload} />
    <div class="note fail"><p class="output">${cut(rows[0].error, 2000)}</p></div>
    ${ids.length > 0 && html`<div class="bulk" role="region" aria-label="Selected dead letters"><span role="status" class="grow">${plural(ids.length, "run")} selected</span>
      <button type="button" class="small" onClick=${() => askRequeue(ids, reload)} ...${only("operator")}>Requeue</button>
      <button type="button" class="small danger" onClick=${() => askDiscard(ids, reload)} ...${only("operator")}>Discard</button>
      <button type="button" class="small" onClick=${() => setChosen(new Set())}>Clear</button></div>`}
    <div class="table-wrap" aria-busy=${letters.busy}>
      <table class="list letters">
        <caption class="hidden">Dead letters with this cause, newest first</caption>
        <thead><tr><th class="pick"><input type="checkbox" aria-label="Select all on this page" checked=${all} onChange=${() => setChosen(all ? new Set() : new Set(rows.map((row) => row.run_id)))} /></th><th>Job</th><th>Scheduled</th><th>Gave up</th><th class="num">Tries</th><th class="acts"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>
          ${rows.map(
            (row) => html`<tr key=${row.run_id} data-row=${row.run_id} class=${chosen.has(row.run_id) ? "picked" : ""}>
              <td class="pick"><input type="checkbox" aria-label="Select the run of ${cut(row.job_name, 60)} at ${row.scheduled_at}" checked=${chosen.has(row.run_id)} onChange=${() => toggle(row.run_id)} /></td>
              <td class="name"><a class="row-link" href=${runPath(row.run_id)}><bdi>${cut(row.job_name || row.job_id, 120)}</bdi></a></td>
              <td data-label="Scheduled"><${When} at=${row.scheduled_at} /></td>
              <td data-label="Gave up"><${Ago} at=${row.failed_at} /></td>
              <td class="num" data-label="Tries">${row.tries}</td>
              <td class="acts"><button type="button" class="small" onClick=${() => askRequeue([row.run_id], reload)} ...${only("operator")}>Requeue</button></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <${Pager} next=${letters.data.next_cursor} label="Pages of dead letters" />`;
}
