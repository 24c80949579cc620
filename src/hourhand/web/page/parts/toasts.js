// What just happened, said once and politely, with a way back where there is one.
import { html, signal } from "../html.js";
import { Icon } from "./icons.js";

const LONGEST = 4;
const SHOWN_MS = 8000;
const toasts = signal([]);
let count = 0;

export function say(text, { tone = "ok", action = null, href = null, label = null } = {}) {
  const id = ++count;
  toasts.value = [...toasts.value.slice(1 - LONGEST), { id, text, tone, action, href, label }];
  setTimeout(() => drop(id), tone === "fail" ? SHOWN_MS * 2 : SHOWN_MS);
}

export function complain(error) {
  const faults = (error.faults || []).slice(0, 3).map((fault) => fault.hint || "").filter(Boolean);
  say([error.message, ...faults].join(" "), { tone: "fail" });
}

function drop(id) {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      (toast) => html`<div class="toast ${toast.tone}" key=${toast.id}>
        <${Icon} name=${toast.tone === "fail" ? "warn" : "check"} />
        <span class="grow">${toast.text}</span>
        ${toast.href && html`<a href=${toast.href} onClick=${() => drop(toast.id)}>${toast.label}</a>`}
        ${toast.action &&
        html`<button type="button" class="link" onClick=${() => (drop(toast.id), toast.action())}>${toast.label}</button>`}
        <button type="button" class="plain-button" aria-label="Dismiss" onClick=${() => drop(toast.id)}><${Icon} name="close" /></button>
      </div>`,
    )}
  </div>`;
}
