// An address that is no view.
import { html } from "../html.js";

export function Lost() {
  return html`<div class="nothing">
    <h1 tabindex="-1">There is nothing at this address</h1>
    <p><a class="button" href="/">Go to Now</a></p>
  </div>`;
}
