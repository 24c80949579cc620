// One dialog at a time, the browser's own: it keeps the focus inside, and Esc closes it.
import { html, signal, useEffect, useId, useRef, useState } from "../html.js";
import { Problem } from "../api.js";

export const open = signal(null);
let shown = 0;

export function show(component, properties = {}) {
  shown += 1;
  open.value = { component, properties, key: shown };
}

export function close() {
  open.value = null;
}

// The browser hides a dialog at Esc and tells of it a moment later: a key in between is meant for the page.
export function isOpen() {
  const dialog = document.querySelector("dialog[data-shown]");
  if (dialog && !dialog.open) close();
  return open.peek() !== null;
}

export function DialogHost() {
  if (!open.value) return null;
  const { component: Component, properties, key } = open.value;
  return html`<${Component} key=${key} ...${properties} />`;
}

// Closes the dialog that it is called in, and no other that has taken its place meanwhile.
function useLeave() {
  const mine = useRef(open.peek());
  return () => open.peek() === mine.current && close();
}

export function Dialog({ title, children, wide = false, onSubmit, actions }) {
  const place = useRef(null);
  const id = useId();
  const leave = useLeave();
  useEffect(() => {
    const before = document.activeElement;
    place.current.showModal();
    place.current.dataset.shown = "";
    return () => before?.isConnected && before.focus();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    onSubmit?.();
  };
  const backdrop = (event) => event.target === place.current && leave();
  return html`<dialog ref=${place} class=${wide ? "wide" : ""} aria-labelledby=${id} onClose=${leave} onClick=${backdrop}>
    <form method="dialog" onSubmit=${submit}>
      <h2 id=${id}>${title}</h2>
      ${children}
      <div class="dialog-actions">${actions}</div>
    </form>
  </dialog>`;
}

// Asks before it acts; what goes wrong is shown where it was asked.
export function Confirm({ title, children, verb, danger = false, typed = null, act, fields = null }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [word, setWord] = useState("");
  const leave = useLeave();
  const ready = !typed || word.trim() === typed;
  const submit = async () => {
    if (busy || !ready) return;
    setBusy(true);
    setError(null);
    try {
      await act();
      leave();
    } catch (failure) {
      setError(failure instanceof Problem ? failure.message : String(failure));
      setBusy(false);
    }
  };
  return html`<${Dialog}
    title=${title}
    onSubmit=${submit}
    actions=${html`<button type="button" onClick=${close}>Keep it as it is</button>
      <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy || !ready}>${busy ? "Working…" : verb}</button>`}
  >
    ${children} ${fields}
    ${typed &&
    html`<label class="field"
      ><span>Type <code>${typed}</code> to go on</span>
      <input type="text" value=${word} autocomplete="off" onInput=${(event) => setWord(event.target.value)} />
    </label>`}
    ${error && html`<p class="error" role="alert">${error}</p>`}
  <//>`;
}
