// The list of deliveries: a table of the newest, one row a delivery; a row opens the detail.

import { drawnOnce, el, keyed, setText, shownText } from './dom.js';
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

/** What an event is about: data model and row, or the page or member, as its server says or its data names it. */
function subjectOf({ subject, payload }) {
  if (subject !== undefined) return subject;
  const data = payload?.data ?? {};
  const what = [data.rowId, data.title, data.name, data.email, data.pageId, data.memberId];
  return [data.datamodelName ?? data.datamodelId, what.find((one) => typeof one === 'string' && one)].filter((one) => typeof one === 'string').join(' · ');
}

/** `0.4 ms`, `58 ms`. */
export const milliseconds = (number) => (number === undefined ? '' : `${number < 10 ? Number(number.toFixed(1)) : Math.round(number).toLocaleString('en')} ms`);

/**
 * `store` has the deliveries, `open(id)` shows one. `nameOf(subscriptionId)` is optional, and so is `now()`, the time that counts for the
 * next attempt. `empty` stands where there is none, `noneFits` where the filter leaves none. `names` are other heads of columns, `states` the words
 * for states.
 * A column without a text is left out. Arrows move in the list. Its filter sets `clear()`.
 */
export function deliveryList({ store, open, nameOf = (id) => id, now = Date.now, empty, noneFits = 'No delivery fits the filter', label, names = {}, states }) {
  const body = el('tbody');
  const nothing = el('div', { class: 'empty' }, empty);
  const words = el('p', { role: 'status' });
  const none = el('div', { class: 'empty', hidden: true }, words, el('button', { onclick: () => list.clear() }, 'Clear filters'));
  const more = el('button', { class: 'quiet', onclick: acting(() => store.more()) }, 'Show more');
  const table = el('table', { class: 'list deliveries', 'aria-label': label },
    el('thead', {}, el('tr', {}, [names.state ?? 'State', 'Time', 'Event', 'Type', 'Reason', 'Took', names.result ?? 'Result', 'Next attempt', 'Webhook']
      .map((name) => el('th', { scope: 'col', class: name === 'Took' ? 'right' : null }, name)))), body);
  let chosen;

  const make = ({ id }) => el('tr', { 'data-delivery': id, onclick: () => open(id) },
    el('td', {}), el('td', { class: 'number' }), el('td', { class: 'main' }, el('button', { class: 'link', dir: 'auto' })),
    el('td', { class: 'type' }), el('td', { class: 'reason', dir: 'auto' }), el('td', { class: 'number right dim' }),
    el('td', { class: 'number' }), el('td', { class: 'number countdown' }), el('td', { class: 'dim', dir: 'auto' }));
  const update = (row, delivery) => {
    const [state, time, event, type, reason, took, result, next, webhook] = row.children;
    if (row.dataset.state !== delivery.state) {
      row.dataset.state = delivery.state;
      state.replaceChildren(stateBadge(delivery.state, states));
    }
    const last = delivery.attempts.at(-1);
    setText(time, timeShown(last?.at ?? delivery.payload?.createdAt, now()));
    setText(event.firstElementChild, subjectOf(delivery) || delivery.eventId || '(no id)');
    event.title = shownText(`${event.textContent}\n${delivery.eventId ?? ''}`);
    setText(type, delivery.eventType || '(no type)');
    const isBad = Boolean(last) && !isAccepted(last);
    setText(reason, wordsOf(delivery, isBad ? last : undefined));
    reason.title = reason.textContent;
    setText(took, milliseconds(last?.durationMs));
    const tries = delivery.attempts.length > 1 ? ` ×${delivery.attempts.length}` : '';
    setText(result, last ? (last.status ?? 'none') + tries : '');
    result.classList.toggle('failed', isBad);
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
    const searched = store.searched();
    nothing.hidden = shown.length > 0 || searched > 0;
    none.hidden = shown.length > 0 || !searched;
    setText(words, none.hidden ? '' : `${noneFits} (${searched.toLocaleString('en')} searched).`);
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
  const list = {
    element: el('div', { class: 'scroll' }, table, nothing, none, more),
    draw,
    /** Gives the focus to this delivery, or to the first one. */
    focus: (id) => button([...body.children].find((row) => row.dataset.delivery === id) ?? body.firstElementChild),
    choose(id) {
      chosen = id;
      draw();
    },
    clear: () => {},
  };
  return list;
}
