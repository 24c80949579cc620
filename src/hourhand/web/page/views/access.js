// Who may do what: the one who is logged in, API tokens, roles; and quotas and deeds, where the server tells of them.
import { html, useState } from "../html.js";
import { ask, get, post, remove } from "../api.js";
import { useLoad } from "../load.js";
import { isAsked, isRead, logOut, may, me, only } from "../me.js";
import { place } from "../router.js";
import { cut, number, plural } from "../text.js";
import { Code } from "../parts/copy.js";
import { Confirm, Dialog, close, show } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Pager } from "../parts/pager.js";
import { Failure, Loading } from "../parts/states.js";
import { say } from "../parts/toasts.js";
import { Ago, When } from "../parts/when.js";

const PAGE = 50;
const FEW = 20;
const ROLES = [
  ["viewer", "reads everything of its tenant"],
  ["operator", "also pauses, resumes, runs, skips, cancels and requeues"],
  ["editor", "also creates, changes and deletes"],
  ["admin", "also makes and revokes tokens, has webhooks, and sees who did what; quotas are set by those who run the system"],
];
const TIMES = [["", "for ever"], ["1d", "a day"], ["7d", "a week"], ["30d", "30 days"], ["90d", "90 days"], ["365d", "a year"]];

export function Access() {
  return html`<div class="title">
      <div><h1 tabindex="-1">Access</h1><p class="faint">Who may do what here.</p></div>
      ${isAsked() && html`<div class="actions"><button type="button" onClick=${logOut}>Log out</button></div>`}
    </div>
    <${You} />
    <${Tokens} />
    <div class="columns"><${Roles} /><${Quota} /></div>
    <${Deeds} />`;
}

const tenantText = (tenant) => (tenant === "*" ? "all: of those who run the system" : tenant);

function You() {
  const found = me.value;
  if (!found) return null;
  if (found.via === "local")
    return html`<div class="note warn"><${Icon} name="warn" /><p>Nobody is asked who they are: this server listens on this machine only, and whoever reaches it may do everything. A token made here counts once <code>auth.mode</code> is <code>tokens</code>.</p></div>`;
  return html`<section aria-label="You">
    <h2>You</h2>
    <dl class="details">
      <div><dt>Name</dt><dd><bdi>${found.subject}</bdi></dd></div>
      <div><dt>Tenant</dt><dd>${tenantText(found.tenant)}${found.acts_for !== found.tenant && ` (here: ${found.acts_for})`}</dd></div>
      <div><dt>Role</dt><dd>${found.role}</dd></div>
      <div><dt>Known by</dt><dd>${found.via === "jwt" ? "a JWT" : "an API token"}</dd></div>
      ${found.expires_at && html`<div><dt>Until</dt><dd><${When} at=${found.expires_at} /></dd></div>`}
    </dl>
  </section>`;
}

function Tokens() {
  const cursor = place.value.query.get("cursor");
  const allowed = may("admin");
  const asks = allowed && isRead.value;
  const page = useLoad((signal) => (asks ? get("/tokens", { limit: PAGE, cursor }, signal) : Promise.resolve(null)), [cursor, asks], { keep: true });
  return html`<section aria-label="Tokens">
    <div class="section-head"><h2>Tokens</h2><button type="button" class="small" onClick=${() => show(NewToken, { done: page.reload })} ...${only("admin")}><${Icon} name="plus" />Make a token</button></div>
    ${allowed ? html`<${TokenList} page=${page} />` : html`<p class="faint">Only an admin sees and makes tokens.</p>`}
  </section>`;
}

function TokenList({ page }) {
  if (!page.data) {
    if (page.error) return html`<${Failure} error=${page.error} retry=${page.reload} />`;
    return html`<${Loading} slow=${page.slow} rows=${3} />`;
  }
  const rows = page.data.data;
  if (!rows.length) return html`<p class="faint">No tokens yet. A program that asks the API needs one, and so does everybody who logs in here.</p>`;
  return html`<div class="table-wrap" aria-busy=${page.busy}>
      <table class="list tokens">
        <caption class="hidden">Tokens, newest first</caption>
        <thead><tr><th>Name</th><th>Tenant</th><th>Role</th><th>State</th><th>Made</th><th>Until</th><th>Last used</th><th class="acts"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${rows.map((token) => html`<${TokenRow} key=${token.token_id} token=${token} done=${page.reload} />`)}</tbody>
      </table>
    </div>
    <${Pager} next=${page.data.next_cursor} label="Pages of tokens" />`;
}

function TokenRow({ token, done }) {
  return html`<tr data-row=${token.token_id}>
    <td class="name"><strong><bdi>${cut(token.name, 60)}</bdi></strong> <span class="faint mono">${token.token_id}</span></td>
    <td data-label="Tenant">${token.tenant === "*" ? "all" : token.tenant}</td>
    <td data-label="Role">${token.role}</td>
    <td data-label="State" class="token-${token.state}">${token.state}</td>
    <td data-label="Made"><${Ago} at=${token.created_at} />${token.created_by && html` <span class="faint">by <bdi>${cut(token.created_by.split(":")[0], 40)}</bdi></span>`}</td>
    <td data-label="Until">${token.expires_at ? html`<${When} at=${token.expires_at} seconds=${false} />` : "for ever"}</td>
    <td data-label="Last used">${token.last_used_at ? html`<${Ago} at=${token.last_used_at} />` : "never"}</td>
    <td class="acts">${token.state === "live" && html`<button type="button" class="small danger" aria-label="Revoke ${cut(token.name, 60)}" onClick=${() => askRevoke(token, done)}>Revoke</button>`}</td>
  </tr>`;
}

function askRevoke(token, done) {
  show(Confirm, {
    title: `Revoke ${cut(token.name, 60)}?`,
    verb: "Revoke the token",
    danger: true,
    act: async () => {
      await remove(`/tokens/${token.token_id}`);
      say(`Revoked ${cut(token.name, 60)}.`);
      done();
    },
    children: html`<p>Whoever uses it is refused within a few seconds. This cannot be taken back.</p>`,
  });
}

function NewToken({ done }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [tenant, setTenant] = useState(me.value?.acts_for || "");
  const [expires, setExpires] = useState("90d");
  const act = async () => {
    const wish = { name: name.trim(), role, ...(tenant.trim() && { tenant: tenant.trim() }), ...(expires && { expires_in: expires }) };
    const made = await post("/tokens", wish);
    done();
    setTimeout(() => show(MadeToken, { made })); // once this dialog has closed
  };
  return html`<${Confirm}
    title="Make a token"
    verb="Make it"
    act=${act}
    fields=${html`<label class="field"><span>Name <em>what it is for</em></span><input type="text" required maxlength="100" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      <div class="pair">
        <label class="field"><span>Role</span><select onChange=${(event) => setRole(event.target.value)}>${ROLES.filter(([one]) => may(one)).map(([one]) => html`<option value=${one} selected=${one === role}>${one}</option>`)}</select></label>
        <label class="field"><span>It holds</span><select onChange=${(event) => setExpires(event.target.value)}>${TIMES.map(([value, label]) => html`<option value=${value} selected=${value === expires}>${label}</option>`)}</select></label>
      </div>
      ${me.value?.tenant === "*" && html`<label class="field"><span>Tenant <em>* is of those who run the system</em></span><input type="text" value=${tenant} onInput=${(event) => setTenant(event.target.value)} /></label>`}`}
  ><p>Its owner may do what the role allows, for one tenant.</p><//>`;
}

function MadeToken({ made }) {
  return html`<${Dialog} title="The token for ${cut(made.name, 60)}" wide onSubmit=${close} actions=${html`<button type="submit" class="primary">I have kept it</button>`}>
    <p>Copy it now: only a hash of it is kept here, so nobody can see it again.</p>
    <${Code} text=${made.token} label="Token" />
    <p class="faint">For programs: <code>HOURHAND_TOKEN</code>, or the header <code>Authorization: Bearer …</code></p>
  <//>`;
}

function Roles() {
  return html`<section aria-label="Roles"><h2>Roles</h2>
    <dl class="details">${ROLES.map(([role, words]) => html`<div key=${role}><dt>${role}</dt><dd>${words}</dd></div>`)}</dl>
  </section>`;
}

// What a server of another version may not have, or this role may not see, is left out.
const wherever = (path, query) => (signal) => ask("GET", path, { query, signal }).catch(() => null);

// What there is of what there may be; of no limit one can only say how much there is.
const isLimited = (limit) => limit !== null && limit !== undefined;
const usedOf = (used, limit, unit = "") => (isLimited(limit) ? `${number(used)} of ${number(limit)}${unit}` : `${number(used)}${unit}, no limit`);
const upTo = (limit, words) => (isLimited(limit) ? words(limit) : "no limit");

function quotaRows({ tenant, limits, use = {} }) {
  return [
    ["Tenant", tenant],
    ["Jobs", usedOf(use.jobs, limits.jobs)],
    ["Runs a minute", usedOf(use.runs_per_minute, limits.runs_per_minute)],
    ["Documents", usedOf(use.document_bytes, limits.document_bytes, " bytes")],
    ["Payload", upTo(limits.payload_bytes, (most) => `up to ${plural(most, "byte")}`)],
    ["History", upTo(limits.history_days, (most) => plural(most, "day"))],
  ];
}

function Quota() {
  const { data } = useLoad(wherever("/quota"), []);
  if (!data?.limits) return null;
  return html`<section aria-label="Quota"><h2>Quota</h2>
    <dl class="details">${quotaRows(data).map(([name, words]) => html`<div key=${name}><dt>${name}</dt><dd><bdi>${words}</bdi></dd></div>`)}</dl>
  </section>`;
}

function Deeds() {
  const admin = me.value?.role === "admin";
  const { data } = useLoad(admin ? wherever("/deeds", { limit: FEW }) : () => Promise.resolve(null), [admin]);
  if (!data?.data?.length) return null;
  return html`<section aria-label="Who did what"><h2>Who did what</h2>
    <div class="table-wrap"><table class="list deeds">
      <caption class="hidden">The last deeds, newest first</caption>
      <thead><tr><th>When</th><th>Who</th><th>What</th><th>To</th><th>Why</th></tr></thead>
      <tbody>${data.data.map(
        (deed, place) => html`<tr key=${place}>
          <td data-label="When"><${Ago} at=${deed.at} /></td>
          <td data-label="Who"><bdi>${cut(deed.subject, 60)}</bdi></td>
          <td data-label="What">${deed.action}</td>
          <td data-label="To">${[deed.what, deed.version && `version ${deed.version}`].filter(Boolean).join(", ")}</td>
          <td data-label="Why"><bdi>${cut(deed.note || "", 100)}</bdi></td>
        </tr>`,
      )}</tbody>
    </table></div>
  </section>`;
}
