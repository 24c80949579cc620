// Keys: views say what theirs do, one listener finds out which was meant. Typing is never taken for a command.
import { html, useLayoutEffect, useRef } from "../html.js";
import { singleKeys } from "../settings.js";
import { refuses } from "../me.js";
import { go } from "../router.js";
import { Dialog, close, isOpen, show } from "./dialog.js";

const handlers = []; // the innermost last
const PATIENCE_MS = 1200;
let prefix = null;

export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const mine = (key, event) => {
      const act = latest.current[key];
      if (!act) return false;
      return act(event) !== false;
    };
    handlers.push(mine);
    return () => handlers.splice(handlers.indexOf(mine), 1);
  }, []);
}

export function begin() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isOpen()) return;
    const typing = isTyping(event.target);
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else if (handled("Escape", event)) event.preventDefault();
      return;
    }
    if (typing || singleKeys.value === "off" || event.key.length > 1) return;
    const key = prefix ? `${prefix.key} ${event.key}` : event.key;
    clearTimeout(prefix?.timer);
    prefix = null;
    if (key === "g") {
      prefix = { key, timer: setTimeout(() => (prefix = null), PATIENCE_MS) };
      return;
    }
    if (handled(key, event)) event.preventDefault();
  });
}

function handled(key, event) {
  for (let index = handlers.length - 1; index >= 0; index -= 1) if (handlers[index](key, event)) return true;
  return false;
}

function isTyping(element) {
  if (!(element instanceof HTMLElement)) return false;
  if (element.closest("dialog:not([open])")) return false; // just closed: the focus leaves its field a moment later
  if (element.isContentEditable || element.tagName === "TEXTAREA" || element.tagName === "SELECT") return true;
  return element.tagName === "INPUT" && !["checkbox", "radio", "button", "submit"].includes(element.type);
}

// Moves among the rows of a list: the focus itself moves, so Enter and screen readers follow.
export function moveRow(step) {
  const rows = [...document.querySelectorAll("[data-row] .row-link")];
  if (!rows.length) return;
  const current = rows.indexOf(document.activeElement?.closest("[data-row]")?.querySelector(".row-link"));
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, current + step));
  rows[next].focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

export function focusedRow() {
  return document.activeElement?.closest("[data-row]")?.dataset.row || null;
}

export const EVERYWHERE = {
  "g n": () => go("/"),
  "g j": () => go("/jobs"),
  "g d": () => go("/dead-letters"),
  "g a": () => go("/access"),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  c: () => refuses("editor") || go("/jobs/new"),
  "?": () => show(Help),
};

const HELP = [
  ["/", "Search jobs"],
  ["g n", "Go to Now"],
  ["g j", "Go to Jobs"],
  ["g d", "Go to Dead letters"],
  ["g a", "Go to Access"],
  ["c", "Create a job"],
  ["j k", "Next and previous row"],
  ["x", "Select the row"],
  ["Enter", "Open the row"],
  ["p", "Pause or resume the job"],
  ["r", "Run the job now, or the run again"],
  ["e", "Edit the job"],
  ["Esc", "Close, leave a field, clear the selection"],
  ["?", "This list"],
];

export function Help() {
  return html`<${Dialog} title="Keys" onSubmit=${close} actions=${html`<button type="submit" class="primary">Close</button>`}>
    <dl class="keys">
      ${HELP.map(
        ([keys, meaning]) => html`<div key=${keys}>
          <dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt>
          <dd>${meaning}</dd>
        </div>`,
      )}
    </dl>
    <label class="check">
      <input
        type="checkbox"
        checked=${singleKeys.value === "on"}
        onChange=${(event) => (singleKeys.value = event.target.checked ? "on" : "off")}
      />
      Keys of one letter are commands
    </label>
  <//>`;
}
