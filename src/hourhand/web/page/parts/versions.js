// What a job was, and when: each version with what differs from the one before.
import { html } from "../html.js";
import { get, jobPath } from "../api.js";
import { useLoad } from "../load.js";
import { cut, targetText } from "../text.js";
import { When } from "./when.js";

const SHOWN = 20;
const UNSHOWN = new Set(["payload", "target"]); // of these only that they changed: headers and environments may be secret

export function Versions({ id, version }) {
  const versions = useLoad((signal) => get(`${jobPath(id)}/versions`, undefined, signal), [id, version], { keep: true });
  const all = versions.data?.data || [];
  if (!all.length) return null;
  const shown = all.map((one, index) => ({ ...one, changes: differences(all[index - 1], one) })).slice(-SHOWN).reverse();
  return html`<section aria-labelledby="versions-title">
    <h2 id="versions-title">Versions</h2>
    <ol class="versions">
      ${shown.map(
        (one) => html`<li key=${one.version}>
          <span class="num">${one.version}</span>
          <div><p><${When} at=${one.from} zone=${one.job?.tz} />${one.by && html` <span class="faint">by <bdi>${cut(one.by, 60)}</bdi></span>`}</p><p class="faint">${one.changes}</p></div>
        </li>`,
      )}
    </ol>
    ${all.length > SHOWN && html`<p class="faint">and ${all.length - SHOWN} before</p>`}
  </section>`;
}

function differences(before, after) {
  if (after.deleted) return "deleted";
  if (!before) return "created";
  const found = [];
  if (before.paused !== after.paused) found.push(after.paused ? `paused${after.note ? `: ${cut(after.note, 100)}` : ""}` : "resumed");
  for (const name of new Set([...Object.keys(before.job), ...Object.keys(after.job)])) {
    const [old, fresh] = [before.job[name], after.job[name]].map((value) => JSON.stringify(value ?? null));
    if (old !== fresh) found.push(UNSHOWN.has(name) ? name : `${name}: ${cut(old, 60)} → ${cut(fresh, 60)}`);
  }
  const [was, becomes] = [targetText(before.job.target), targetText(after.job.target)];
  if (was !== becomes) found[found.indexOf("target")] = `target: ${cut(was, 60)} → ${cut(becomes, 60)}`;
  return found.join("; ") || "no difference";
}
