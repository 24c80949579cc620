// The few names that every view needs, in one place: templates, hooks and signals.
import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export const html = htm.bind(h);
export { Fragment, render } from "./vendor/preact.js";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal } from "./vendor/signals-core.js";
import "./vendor/signals.js"; // lets components follow the signals that they read
