// A state as a mark and a word: the shape says it as well as the colour.
import { html } from "../html.js";

const SHAPES = {
  SUCCEEDED: ["ok", "succeeded", "M3 8.500l3.200 3.200L13 4.800"],
  FAILED: ["fail", "failed", "M4 4l8 8M12 4l-8 8"],
  RETRYING: ["warn", "retrying", "M13 8a5 5 0 1 1-1.600-3.700M13 2.200v2.900h-2.900"],
  RUNNING: ["run", "running", "M5 3.200v9.600l7.500-4.800z"],
  PENDING: ["wait", "pending", "M8 2.500a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11M8 5v3l2 1.500"],
  WAITING: ["wait", "waiting", "M8 2.500a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11M8 5v3l2 1.500"],
  SKIPPED: ["skip", "skipped", "M3.500 8a4.500 4.500 0 1 0 9 0 4.500 4.500 0 1 0-9 0"],
  CANCELLED: ["skip", "cancelled", "M3.500 8a4.500 4.500 0 1 0 9 0 4.500 4.500 0 1 0-9 0M4.800 11.200l6.400-6.400"],
  active: ["calm", "active", "M3 8.500l3.200 3.200L13 4.800"],
  paused: ["warn", "paused", "M5.500 3.500v9M10.500 3.500v9"],
  completed: ["skip", "completed", "M3 3.500h10v9H3zM5.500 8l2 2 3.500-4"],
  deleted: ["skip", "deleted", "M4 8h8"],
};

export const wordOf = (state) => SHAPES[state]?.[1] || String(state).toLowerCase();
export const toneOf = (state) => SHAPES[state]?.[0] || "wait";

export function Status({ state, quiet = false }) {
  const [tone, word, path] = SHAPES[state] || ["wait", String(state), SHAPES.PENDING[2]];
  return html`<span class="status ${tone} ${quiet ? "quiet" : ""}">
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${path} /></svg>${word}
  </span>`;
}
