// Short messages: what was done, and what was refused.

import { el } from './dom.js';

const SHOWN_MS = 6000;

function tell(kind, text) {
  const line = el('p', { class: `message ${kind}`, role: kind === 'bad' ? 'alert' : null }, text);
  const all = document.getElementById('told');
  all.append(line);
  while (all.childElementCount > 3) all.firstElementChild.remove();
  setTimeout(() => line.remove(), SHOWN_MS);
}

export const done = (text) => tell('good', text);
export const failed = (error) => tell('bad', error?.message ?? String(error));

/** Makes a handler that tells the error of an action. The button can't be pressed twice meanwhile. */
export function acting(action) {
  return async (event) => {
    const button = event?.currentTarget;
    if (button?.getAttribute('aria-busy') === 'true') return;
    button?.setAttribute('aria-busy', 'true');
    try {
      await action(event);
    } catch (error) {
      failed(error);
    } finally {
      button?.removeAttribute('aria-busy');
    }
  };
}

/** Puts a text into the clipboard; where the browser does not allow that, it is shown to be copied by hand. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    done(`${what} copied`);
  } catch {
    const area = el('textarea', { readonly: true, rows: '10', 'aria-label': what, value: text });
    const dialog = el('dialog', { class: 'wide' }, el('h2', {}, what), area,
      el('p', { class: 'actions' }, el('button', { onclick: () => dialog.close() }, 'Close')));
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    area.select();
  }
}
