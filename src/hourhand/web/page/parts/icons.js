// Small pictures, drawn here: one path each on a grid of 16. They carry no meaning that words beside them do not.
import { html } from "../html.js";

const PATHS = {
  now: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.6V8l2.4 1.6",
  jobs: "M3 4h10M3 8h10M3 12h6",
  dead: "M2.5 9h3l1 2h3l1-2h3M2.5 9l2-5.5h7l2 5.5v4h-11z",
  key: "M10 2.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7M7.500 8.500 2.500 13.500M4.500 11.500l1.800 1.800",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9m3.3 7.8 3.2 3.2",
  plus: "M8 3v10M3 8h10",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2v9.6l7.5-4.8z",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2.2v2.9h-2.9",
  close: "M4 4l8 8M12 4l-8 8",
  edit: "M3 13l.7-3L10.5 3.200l2.300 2.300L6 12.300zM9 4.700l2.300 2.300",
  trash: "M3 4.500h10M6.200 4.300V2.700h3.600v1.600M4.300 4.500l.6 8.800h6.200l.6-8.800",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  skip: "M3.500 3.500v9L10 8zM12.500 3.500v9",
  sun: "M8 5.200a2.800 2.800 0 1 0 0 5.600 2.800 2.800 0 0 0 0-5.600M8 1v1.600M8 13.400V15M1 8h1.600M13.400 8H15M3 3l1.200 1.200M11.800 11.800 13 13M3 13l1.200-1.200M11.800 4.200 13 3",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500",
  auto: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  globe: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M2 8h12M8 2c2 1.800 2.600 4 2.600 6S10 12.200 8 14c-2-1.800-2.600-4-2.600-6S6 3.800 8 2",
  help: "M6 6.200a2 2 0 1 1 2.800 1.900c-.6.300-.8.600-.8 1.400M8 11.900v.2",
  left: "M10 3.500 5.500 8l4.500 4.500",
  right: "M6 3.500 10.500 8 6 12.500",
  more: "M3.500 8h.1M8 8h.1M12.500 8h.1",
  warn: "M8 2.500 14 13H2zM8 6.500v3M8 11.200v.2",
  check: "M3.500 8.500l3 3 6-7",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}
