// The list of deliveries: a table of the newest, one row a delivery; a row opens the detail.

import { drawnOnce, el, keyed, setText } from './dom.js';
import { span, timeShown } from './times.js';
import { acting } from './told.js';

/** The word of a state, and how it is coloured. */
const LOOKS = {
  delivered: 'good', done: 'good', again: 'calm', pending: 'wait', runs_on: 'wait',
  discarded: 'bad', failed: 'bad', refused: 'bad',
};

export const stateBadge = (state, names = []) =>
  el('span', { class: `badge ${LOOKS[state] ?? 'calm'}` }, names.find(([value]) => value === state)?.[1] ?? state);

/** The text about the result of an attempt: its status, or why there is none. */
export const resultOf = (attempt) => (attempt ? String(attempt.status ?? attempt.error ?? '') : '');

/** The reason of a failure, in the words of the server and of `send`. */
export const wordsOf = ({ reason }, attempt) => reason ?? attempt?.error ?? attempt?.meaning ?? '';

export const isAccepted = ({ status }) => status >= 200 && status < 300;

/**
 * `store` has the deliveries, `open(id)` shows one. `nameOf(subscriptionId)` is optional, and so is `now()`, the time that counts for the
 * next attempt. `empty` stands where there is none, `noneFits` where the filter leaves none. `names` are other heads of columns, `states` the words
 * for states.
 * A column without a text is left out. Arrows move in the list.
 */
export function deliveryList({ store, open, nameOf = (id) => id, now = Date.now, empty, noneFits = 'No delivery fits the filter', label, names = {}, states }) {
  const body = el('tbody');
  const none = el('p', { class: 'empty', role: 'status' }, empty);
  const more = el('button', { class: 'quiet', onclick: acting(() => store.more()) }, 'Show more');
  const table = el('table', { class: 'list deliveries', 'aria-label': label },
    el('thead', {}, el('tr', {}, [names.state ?? 'State', 'Time', 'Event', names.result ?? 'Result', 'Next attempt', 'Webhook']
      .map((name) => el('th', { scope: 'col' }, name)))), body);
  let chosen;

  const make = ({ id }) => {
    const button = el('button', { class: 'link' });
    const row = el('tr', { 'data-delivery': id, onclick: () => open(id) },
      el('td', {}), el('td', { class: 'number' }), el('td', { class: 'main' }, button, el('small', { class: 'id' })),
      el('td', { class: 'number' }), el('td', { class: 'number countdown' }), el('td', { class: 'dim' }));
    return row;
  };
  const update = (row, delivery) => {
    const [state, time, event, result, next, webhook] = row.children;
    if (row.dataset.state !== delivery.state) {
      row.dataset.state = delivery.state;
      state.replaceChildren(stateBadge(delivery.state, states));
    }
    const last = delivery.attempts.at(-1);
    setText(time, timeShown(last?.at ?? delivery.payload?.createdAt, now()));
    setText(event.firstElementChild, delivery.eventType || '(no type)');
    setText(event.lastElementChild, delivery.eventId ?? '');
    event.lastElementChild.title = delivery.eventId ?? '';
    const tries = delivery.attempts.length > 1 ? ` ×${delivery.attempts.length}` : '';
    setText(result, resultOf(last) + tries);
    result.classList.toggle('failed', Boolean(last) && !isAccepted(last));
    result.title = wordsOf(delivery, last);
    setText(webhook, nameOf(delivery.subscriptionId) ?? '');
    row.classList.toggle('chosen', delivery.id === chosen);
    next.dataset.due = delivery.nextAttemptAt ?? '';
    tick(next);
  };
  const tick = (cell) => {
    const { due } = cell.dataset;
    setText(cell, due ? `in ${span(Date.parse(due) - now())}` : '');
  };
  const draw = drawnOnce(() => {
    const shown = store.all();
    keyed(body, shown, (delivery) => delivery.id, make, update);
    const rows = [...body.children];
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const isEmpty = rows.every((row) => row.cells[at].textContent === '');
      for (const row of [head.parentElement, ...rows]) row.cells[at].hidden = isEmpty;
    });
    table.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    const searched = store.searched();
    setText(none, searched ? `${noneFits} (${searched.toLocaleString('en')} searched).` : empty);
    more.hidden = !store.hasMore();
  });
  const button = (row) => row?.querySelector('button')?.focus();
  body.addEventListener('keydown', (event) => {
    const row = event.target.closest('tr');
    const to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild };
    if (!(event.key in to) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    button(to[event.key]);
  });
  store.watch(draw);
  setInterval(() => body.querySelectorAll('.countdown').forEach(tick), 500);
  return {
    element: el('div', { class: 'scroll' }, table, none, more),
    draw,
    /** Gives the focus to this delivery, or to the first one. */
    focus: (id) => button([...body.children].find((row) => row.dataset.delivery === id) ?? body.firstElementChild),
    choose(id) {
      chosen = id;
      draw();
    },
  };
}
