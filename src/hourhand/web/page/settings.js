// What the viewer chose and the browser remembers: signals that write themselves down.
import { effect, signal } from "./html.js";

export function remembered(name, initial, allowed) {
  const key = `hourhand.${name}`;
  let value = null;
  try {
    value = localStorage.getItem(key);
  } catch {
    // storage may be forbidden: then the choice lasts as long as the page
  }
  const chosen = signal(allowed.includes(value) ? value : initial);
  effect(() => {
    const now = chosen.value;
    try {
      if (now === initial) localStorage.removeItem(key);
      else localStorage.setItem(key, now);
    } catch {
      // as above
    }
  });
  return chosen;
}

export const theme = remembered("theme", "system", ["system", "light", "dark"]);
export const zoneMode = remembered("zone", "job", ["job", "mine", "utc"]);
export const singleKeys = remembered("keys", "on", ["on", "off"]);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});
