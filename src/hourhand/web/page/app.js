// The frame around the views: navigation, live state, switches, keys; and which view an address means.
import { html, render, useEffect, useRef } from "./html.js";
import * as live from "./live.js";
import * as identity from "./me.js";
import * as router from "./router.js";
import { theme, zoneMode } from "./settings.js";
import { cut } from "./text.js";
import { MINE, now } from "./time.js";
import { DialogHost, show } from "./parts/dialog.js";
import { Icon } from "./parts/icons.js";
import * as keys from "./parts/keys.js";
import { Toasts } from "./parts/toasts.js";
import { Now } from "./views/now.js";
import { Jobs } from "./views/jobs.js";
import { Job } from "./views/job.js";
import { Create, Edit } from "./views/edit.js";
import { Run } from "./views/run.js";
import { DeadLetters } from "./views/dead_letters.js";
import { Access } from "./views/access.js";
import { Lost } from "./views/lost.js";

const VIEWS = { now: Now, jobs: Jobs, job: Job, create: Create, edit: Edit, run: Run, dead: DeadLetters, access: Access, lost: Lost };
const TITLES = { now: "Now", jobs: "Jobs", job: "Job", create: "Create a job", edit: "Edit a job", run: "Run", dead: "Dead letters", access: "Access", lost: "Not found" };
const NAVIGATION = [["/", "Now", "now", ["now"]], ["/jobs", "Jobs", "jobs", ["jobs", "job", "create", "edit", "run"]], ["/dead-letters", "Dead letters", "dead", ["dead"]], ["/access", "Access", "key", ["access"]]];

function App() {
  const { view, id, path } = router.place.value;
  const main = useRef(null);
  const first = useRef(true);
  keys.useKeys({ ...keys.EVERYWHERE, "/": () => router.go("/jobs?focus=1") });
  useEffect(() => {
    document.title = `${TITLES[view]} · hourhand`;
    if (first.current) first.current = false;
    else if (!main.current.contains(document.activeElement)) main.current.focus({ preventScroll: true });
  }, [path]);
  const View = VIEWS[view];
  return html`<a class="skip-link" href="#main">Skip to the content</a>
    <${Bar} view=${view} />
    <${Banner} />
    <main id="main" ref=${main} tabindex="-1"><${View} key=${path} id=${id} /></main>
    <${Navigation} view=${view} place="bottom" />
    <${Toasts} />
    <${DialogHost} />`;
}

function Bar({ view }) {
  return html`<header class="bar">
    <a class="brand" href="/" aria-label="hourhand, now"><svg viewBox="0 0 32 32" aria-hidden="true" focusable="false"><circle cx="16" cy="16" r="14" /><path d="M16 16V8M16 16l6 4" /></svg><span>hourhand</span></a>
    <${Navigation} view=${view} place="top" />
    <span class="grow"></span>
    <${Me} />
    <${LiveState} />
    <${ZoneSwitch} />
    <${ThemeSwitch} />
    <button type="button" class="quiet help" aria-label="Keys" title="Keys ( ? )" onClick=${() => show(keys.Help)}><kbd>?</kbd></button>
  </header>`;
}

function Navigation({ view, place }) {
  return html`<nav class="nav ${place}" aria-label=${place === "top" ? "Views" : "Views, below"}>
    ${NAVIGATION.map(
      ([href, label, icon, views]) => html`<a key=${href} href=${href} aria-current=${views.includes(view) ? "page" : undefined}><${Icon} name=${icon} /><span>${label}</span></a>`,
    )}
  </nav>`;
}

function Me() {
  if (!identity.isAsked()) return null;
  const { subject, role, tenant } = identity.me.value;
  return html`<a class="me" href="/access" title="Logged in as ${subject}, ${role} of ${tenant === "*" ? "the system" : tenant}"><bdi>${cut(subject.split(":")[0], 24)}</bdi> <span class="faint">${role}</span></a>`;
}

const STATES = { live: "Live", paused: "Paused", reconnecting: "Reconnecting", connecting: "Connecting" };

function LiveState() {
  const state = live.state.value;
  const act = state === "paused" ? live.resume : live.pause;
  const next = state === "paused" ? "Follow again" : "Pause updates";
  return html`<button type="button" class="live ${state}" onClick=${act} title=${next} aria-label="${STATES[state]}. ${next}">
    <span class="dot" aria-hidden="true"></span><span class="text">${STATES[state]}</span>
  </button>`;
}

function Banner() {
  if (live.state.value !== "reconnecting") return null;
  const left = live.retryAt.value ? Math.max(0, Math.ceil((live.retryAt.value - now.value) / 1000)) : 0;
  return html`<div class="banner" role="status">
    <span>The connection is lost; what is shown may be old.${left ? ` Next try in ${left} s.` : " Trying again."}</span>
    <button type="button" class="small" onClick=${live.retryNow}>Try now</button>
  </div>`;
}

const ZONES = { job: ["Job's zone", "mine"], mine: ["My zone", "utc"], utc: ["UTC", "job"] };

function ZoneSwitch() {
  const [label, next] = ZONES[zoneMode.value];
  const more = zoneMode.value === "mine" ? ` (${MINE})` : "";
  return html`<button type="button" class="quiet zone-switch" title="Times are shown in: ${label}${more}. Switch to: ${ZONES[next][0]}" aria-label="Times: ${label}${more}. Switch to: ${ZONES[next][0]}" onClick=${() => (zoneMode.value = next)}>
    <${Icon} name="globe" /><span class="text">${label}</span>
  </button>`;
}

const THEMES = { system: ["System theme", "light", "auto"], light: ["Light theme", "dark", "sun"], dark: ["Dark theme", "system", "moon"] };

function ThemeSwitch() {
  const [label, next, icon] = THEMES[theme.value];
  return html`<button type="button" class="quiet" title="${label}. Switch to: ${THEMES[next][0]}" aria-label="${label}. Switch to: ${THEMES[next][0]}" onClick=${() => (theme.value = next)}><${Icon} name=${icon} /></button>`;
}

router.begin();
keys.begin();
identity.begin();
live.begin();
render(html`<${App} />`, document.getElementById("app"));
