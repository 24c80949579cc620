// The log of a run, followed while it grows; only the last lines are kept on the page.
import { html, useEffect, useRef, useState } from "../html.js";
import { get, runPath } from "../api.js";

const KEPT = 2000;
const POLL_MS = 1000;

export function Log({ id, over }) {
  const [lines, setLines] = useState(null);
  const [cut, setCut] = useState(0);
  const after = useRef(undefined);
  const place = useRef(null);
  const finished = useRef(over);
  finished.current = over;

  useEffect(() => {
    const controller = new AbortController();
    let timer = null;
    after.current = undefined;
    setLines(null);
    const read = async () => {
      try {
        const page = await get(`${runPath(id)}/log`, { after: after.current }, controller.signal);
        after.current = page.next_after ?? after.current;
        if (page.data.length) setLines((was) => [...(was || []), ...page.data].slice(-KEPT));
        setCut((was) => was + page.data.length);
        if (page.done || (finished.current && !page.data.length)) return;
        timer = setTimeout(read, page.data.length ? 100 : POLL_MS);
      } catch (error) {
        if (error.name !== "AbortError" && error.status !== 404) timer = setTimeout(read, POLL_MS * 5);
      }
    };
    read();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [id]);

  useEffect(() => {
    const box = place.current;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 80) box.scrollTop = box.scrollHeight;
  }, [lines]);

  if (!lines) return null;
  return html`<section aria-labelledby="log-title">
    <h2 id="log-title">Log</h2>
    ${cut > KEPT && html`<p class="faint">The last ${KEPT} lines.</p>`}
    <pre class="log" ref=${place} tabindex="0" role="log" aria-label="Log">${lines.map((line) => html`<span key=${line.seq} class=${line.stream === "stderr" ? "stderr" : ""}>${line.text}${line.text.endsWith("\n") ? "" : "\n"}</span>`)}</pre>
  </section>`;
}
