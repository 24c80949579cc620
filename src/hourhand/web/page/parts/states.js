// What a view shows when it has nothing, not yet, or an error.
import { html } from "../html.js";
import { Icon } from "./icons.js";

export function Failure({ error, retry }) {
  const gone = error.status === 404;
  return html`<div class="note fail" role="alert">
    <${Icon} name="warn" />
    <div>
      <p><strong>${gone ? "There is no such thing." : error.status === 403 ? "You may not do this." : "That did not work."}</strong> <span>${error.message}</span></p>
      ${error.requestId && html`<p class="faint">Request ${error.requestId}</p>`}
      ${retry && !gone && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  </div>`;
}

export function Loading({ slow, rows = 6 }) {
  if (!slow) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<div class="loading" aria-busy="true">
    <span class="hidden" role="status">Loading</span>
    ${Array.from({ length: rows }, (_, index) => html`<div class="skeleton" key=${index}></div>`)}
  </div>`;
}

export function Nothing({ title, children }) {
  return html`<div class="nothing"><h2>${title}</h2>${children}</div>`;
}
