// Every view is an address. Follows the browser's history; a click on a link of ours moves there without a load.
import { signal } from "./html.js";

const VIEWS = [
  [/^\/$/, "now"],
  [/^\/jobs$/, "jobs"],
  [/^\/jobs\/new$/, "create"],
  [/^\/jobs\/([^/]+)$/, "job"],
  [/^\/jobs\/([^/]+)\/edit$/, "edit"],
  [/^\/runs\/([^/]+)$/, "run"],
  [/^\/dead-letters$/, "dead"],
  [/^\/access$/, "access"],
];

export const place = signal(here());

export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  const before = place.value.path;
  place.value = here();
  if (!replace && place.value.path !== before) window.scrollTo(0, 0);
}

// The same view with other questions: names that are empty leave the address.
export function ask(changes, { replace = false } = {}) {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  go(place.value.path + (text ? `?${text}` : ""), { replace });
}

export function begin() {
  window.addEventListener("popstate", () => (place.value = here()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (!isView(link.pathname) || link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

function here() {
  const { pathname, search } = location;
  for (const [pattern, view] of VIEWS) {
    const found = pattern.exec(pathname);
    if (found) return { view, id: found[1] ? decode(found[1]) : null, path: pathname, query: new URLSearchParams(search) };
  }
  return { view: "lost", id: null, path: pathname, query: new URLSearchParams(search) };
}

function isView(path) {
  return VIEWS.some(([pattern]) => pattern.test(path));
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
