// The search and the choices above a list: the server looks at all that it keeps.

import { el } from './dom.js';

const PAUSE_MS = 200;

/** The arrow down goes to the list, by `down()`; `/` goes to the search, unless it says that it has no key. */
export function searchInput({ label, down, id, hasKey = true }) {
  const input = el('input', { type: 'search', id, 'aria-label': label, placeholder: hasKey ? `${label}: /` : label, autocomplete: 'off', spellcheck: 'false' });
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    down();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || !hasKey || !input.isConnected) return;
    if (event.target.closest('input, textarea, select, dialog, [role=grid]')) return;
    event.preventDefault();
    input.focus();
  });
  return input;
}

/** Calls `ask` a moment after the last change of these inputs. */
export function asked(inputs, ask) {
  let waiting;
  const askSoon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, PAUSE_MS);
  };
  // A text has its `change` only when it is left: a second time, after the list has gone on.
  for (const input of inputs) input.addEventListener(input.matches('select') ? 'change' : 'input', askSoon);
}
