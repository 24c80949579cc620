// Reading for a view: one request at a time, the old answer shown until the new one is there, "slow" after 200 ms.
import { useCallback, useEffect, useRef, useState } from "./html.js";

const SLOW_MS = 200;

export function useLoad(load, keys, { keep = false } = {}) {
  const [shown, show] = useState({ data: undefined, error: null, slow: false, busy: true });
  const current = useRef(null);
  const latest = useRef(load);
  latest.current = load;

  const read = useCallback((fresh) => {
    current.current?.abort();
    const mine = new AbortController();
    current.current = mine;
    const timer = setTimeout(() => show((was) => ({ ...was, slow: true })), SLOW_MS);
    show((was) => ({ ...was, busy: true, data: fresh ? undefined : was.data, error: fresh ? null : was.error }));
    return latest
      .current(mine.signal)
      .then((data) => {
        if (!mine.signal.aborted) show({ data, error: null, slow: false, busy: false });
      })
      .catch((error) => {
        if (!mine.signal.aborted) show((was) => ({ data: was.data, error, slow: false, busy: false }));
      })
      .finally(() => clearTimeout(timer));
  }, []);

  useEffect(() => {
    read(!keep);
    return () => current.current?.abort();
  }, keys);

  const reload = useCallback(() => read(false), []);
  const change = useCallback((make) => show((was) => ({ ...was, data: make(was.data) })), []);
  return { ...shown, reload, change };
}

// Calls at most once per interval, the last time included.
export function useThrottled(act, intervalMs) {
  const latest = useRef(act);
  latest.current = act;
  const timer = useRef(null);
  const last = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current) return;
    const left = Math.max(0, last.current + intervalMs - Date.now());
    timer.current = setTimeout(() => {
      timer.current = null;
      last.current = Date.now();
      latest.current();
    }, left);
  }, [intervalMs]);
}
