// Sends dead letters of one cause back at a pace: a few a second, by page, until none from before is left.
import { html, useEffect, useRef, useState } from "../html.js";
import { get, post } from "../api.js";
import { number, plural } from "../text.js";
import { say } from "./toasts.js";

const MOST_AT_ONCE = 200;
const RATES = [1, 5, 10, 50, 200];

export function Replay({ error, total, done }) {
  const [rate, setRate] = useState(10);
  const [sent, setSent] = useState(null); // null before the start
  const stop = useRef(false);
  useEffect(() => () => (stop.current = true), []);

  const start = async () => {
    stop.current = false;
    setSent(0);
    const to = new Date().toISOString(); // what fails again meanwhile is left where it is
    let sum = 0;
    try {
      while (!stop.current) {
        const began = Date.now();
        const { data } = await get("/dead-letters", { error, to, limit: Math.min(rate, MOST_AT_ONCE) });
        if (!data.length) break;
        const { count } = await post("/dead-letters/requeue", { ids: data.map((letter) => letter.run_id) });
        sum += count;
        setSent(sum);
        if (data.length < rate) break;
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, 1000 - (Date.now() - began))));
      }
      say(`Sent ${plural(sum, "run")} back${stop.current ? ", then stopped" : ""}.`);
    } catch (failure) {
      say(`After ${plural(sum, "run")}: ${failure.message}`, { tone: "fail" });
    }
    done();
  };

  if (sent !== null)
    return html`<div class="replay" role="status">
      <progress max=${total} value=${sent} aria-label="Requeued"></progress>
      <span>${number(sent)} of ${number(total)}</span>
      <button type="button" class="small" onClick=${() => (stop.current = true)}>Stop</button>
    </div>`;
  return html`<form class="replay" onSubmit=${(event) => (event.preventDefault(), start())}>
    <label>Runs a second <select value=${rate} onChange=${(event) => setRate(Number(event.target.value))}>${RATES.map((one) => html`<option value=${one} selected=${one === rate}>${one}</option>`)}</select></label>
    <button type="submit" class="primary">Requeue ${number(total)}</button>
    <button type="button" onClick=${done}>Leave them</button>
  </form>`;
}
