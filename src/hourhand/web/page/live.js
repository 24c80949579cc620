// The stream of events: one per page, resumed where it broke off, with a state that people can see.
// Views hear every message; what they make of it is theirs.
import { signal, useLayoutEffect, useRef } from "./html.js";
import { logIn } from "./api.js";

export const state = signal("connecting"); // connecting, live, paused, reconnecting
export const retryAt = signal(null); // when the next try is due, while reconnecting

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10000;
const SILENCE_MS = 40000; // the server speaks every 15 s
const HIDDEN_MS = 60000; // a page that nobody sees lets go of its connection
const LONGEST_FRAME = 1 << 20;

const listeners = new Set();
let lastId = null;
let controller = null;
let wake = null; // ends a wait between two tries
let hiddenTimer = null;
let wanted = true;

export function useLive(heard) {
  const latest = useRef(heard);
  latest.current = heard;
  useLayoutEffect(() => {
    const tell = (message) => latest.current(message);
    listeners.add(tell);
    return () => listeners.delete(tell);
  }, []);
}

export function begin() {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(() => controller?.abort(), HIDDEN_MS);
    else wake?.();
  });
  window.addEventListener("online", () => wake?.());
  follow();
}

export function pause() {
  wanted = false;
  state.value = "paused";
  controller?.abort();
}

export function resume() {
  wanted = true;
  state.value = "connecting";
  wake?.();
}

export function retryNow() {
  wake?.();
}

async function follow() {
  let failures = 0;
  for (;;) {
    if (!wanted || document.hidden) {
      await wait(null);
      continue;
    }
    if (await listen(() => (failures = 0))) {
      failures = 0; // it was asked to end
    } else {
      failures += 1;
      state.value = "reconnecting";
    }
    if (wanted && !document.hidden) await wait(failures ? pauseBefore(failures) : 0);
  }
}

function pauseBefore(failures) {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return longest * (0.5 + Math.random() / 2);
}

function wait(ms) {
  return new Promise((resolve) => {
    const timer = ms === null ? null : setTimeout(done, ms);
    retryAt.value = ms && state.value === "reconnecting" ? Date.now() + ms : null;
    function done() {
      clearTimeout(timer);
      wake = null;
      retryAt.value = null;
      resolve();
    }
    wake = done;
  });
}

// Follows until the stream ends; true when that was our own wish.
async function listen(connected) {
  controller = new AbortController();
  const mine = controller;
  let silence = null;
  const heardSomething = () => {
    clearTimeout(silence);
    silence = setTimeout(() => mine.abort("silence"), SILENCE_MS);
  };
  try {
    heardSomething();
    const headers = { Accept: "text/event-stream" };
    if (lastId) headers["Last-Event-ID"] = lastId;
    const response = await fetch("/api/v1/events", { headers, signal: mine.signal, cache: "no-store" });
    if (response.status === 401) logIn();
    if (!response.ok) return false;
    state.value = "live";
    connected();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return false;
      heardSomething();
      rest += value;
      const frames = rest.split("\n\n");
      rest = frames.pop();
      if (rest.length > LONGEST_FRAME) return false;
      frames.forEach(take);
    }
  } catch {
    return mine.signal.aborted && mine.signal.reason !== "silence";
  } finally {
    clearTimeout(silence);
    mine.abort();
  }
}

function take(frame) {
  let kind = "message";
  let data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("id: ")) lastId = line.slice(4);
    else if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!data) return;
  let body;
  try {
    body = JSON.parse(data);
  } catch {
    return;
  }
  const message = { kind, ...body };
  for (const tell of listeners) tell(message);
}
