// Who is logged in, and what they may do. Only shows it: the server decides by itself, each time.
import { html, signal } from "./html.js";
import { get } from "./api.js";
import { say } from "./parts/toasts.js";

export const me = signal(null); // null while it is not known: then nothing is held back
export const isRead = signal(false); // the server has answered, whatever it said

const ROLES = ["viewer", "operator", "editor", "admin"];

export async function begin() {
  try {
    me.value = await get("/whoami");
  } catch {
    // a view that asks for something says what is wrong
  }
  isRead.value = true;
}

export const isAsked = () => me.value !== null && me.value.via !== "local";

export function may(role) {
  return me.value === null || ROLES.indexOf(me.value.role) >= ROLES.indexOf(role);
}

const words = (role) => `This needs the role ${role}; yours is ${me.value.role}.`;

// What a button needs that not everybody may press: spread into it, after its own properties.
export function only(role) {
  return may(role) ? {} : { disabled: true, title: words(role) };
}

// The same for what keys do: says so, and is true, when it must not happen.
export function refuses(role) {
  if (may(role)) return false;
  say(words(role), { tone: "fail" });
  return true;
}

// A link that looks like a button, to a view in which only some can do something.
export function ButtonLink({ role, href, kind = "", children }) {
  if (may(role)) return html`<a class="button ${kind}" href=${href}>${children}</a>`;
  return html`<button type="button" class=${kind} ...${only(role)}>${children}</button>`;
}

export async function logOut() {
  await fetch("/logout", { method: "POST", redirect: "manual" });
  location.assign("/login");
}
