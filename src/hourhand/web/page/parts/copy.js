// Text that one takes along.
import { html, useState } from "../html.js";
import { Icon } from "./icons.js";

export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      setDone("Copied");
    } catch {
      setDone("The browser refused"); // only pages from a safe place may
    }
    setTimeout(() => setDone(null), 2000);
  };
  return html`<button type="button" class="small" onClick=${copy}>
    <${Icon} name="copy" /><span aria-live="polite">${done || label}</span>
  </button>`;
}

export function Code({ text, label }) {
  return html`<figure class="code">
    <figcaption><span>${label}</span><${Copy} text=${text} /></figcaption>
    <pre tabindex="0" aria-label=${label}>${text}</pre>
  </figure>`;
}
