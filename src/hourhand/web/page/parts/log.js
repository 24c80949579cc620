// The log of a run, followed while it grows; only its end is kept on the page, and only ever as text.
import { html, useEffect, useRef, useState } from "../html.js";
import { get, runPath } from "../api.js";

const KEPT = 500; // pieces, each of a few kilobytes at most
const POLL_MS = 1000;
const SOON_MS = 100; // there was something, so more may wait
const COLOURS = new RegExp("\\u001b\\[[0-9;?]*[ -/]*[@-~]", "g"); // what terminals take for colours and moves

export function Log({ id, over }) {
  const [pieces, setPieces] = useState(null);
  const [dropped, setDropped] = useState(false);
  const place = useRef(null);
  const ended = useRef(over);
  ended.current = over;

  useEffect(() => {
    const controller = new AbortController();
    let timer = null;
    let after;
    setPieces(null);
    setDropped(false);
    const read = async () => {
      try {
        const page = await get(`${runPath(id)}/log`, { after }, controller.signal);
        after = page.next_after ?? after;
        if (page.data.length) setPieces((was) => [...(was || []), ...page.data].slice(-KEPT - 1));
        if (page.done || (ended.current && !page.data.length)) return;
        timer = setTimeout(read, page.data.length ? SOON_MS : POLL_MS);
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
    if (pieces?.length > KEPT) setDropped(true);
    const box = place.current;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 120) box.scrollTop = box.scrollHeight;
  }, [pieces]);

  if (!pieces) return null;
  const shown = pieces.slice(-KEPT);
  return html`<section aria-labelledby="log-title">
    <h2 id="log-title">Log</h2>
    ${dropped && html`<p class="faint">Only its end is shown; hourhand runs logs has all of it.</p>`}
    <pre class="log" ref=${place} tabindex="0" role="log" aria-label="Log">${shown.map((piece, index) => [
      index > 0 && shown[index - 1].attempt !== piece.attempt ? html`<span class="from-system">attempt ${piece.attempt}\n</span>` : null,
      html`<span key=${`${piece.attempt}-${piece.seq}`} class="from-${piece.stream}">${piece.text.replace(COLOURS, "")}</span>`,
    ])}</pre>
  </section>`;
}
