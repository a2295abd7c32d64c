// One delivery: its attempts with request and answer, the time to the next, and the actions that the server has for it.

import { drawnOnce, el, fill, setText } from './dom.js';
import { bodyShown } from './json.js';
import { setPlace } from './place.js';
import { moment, span } from './times.js';
import { acting, failed } from './told.js';
import { isAccepted, milliseconds, stateBadge, wordsOf } from './delivery_list.js';

/**
 * `actions` are `[{ label, about, run(detail), fits(detail) }]`: a button where it fits; what `run` returns, an element, is shown below. `facts(detail)`
 * are pairs of a name and a text. `heading(number)` is that of an attempt. `at()` are the parts of the address before the delivery's id. `gone(id)` is said
 * of a delivery that the server does not have. `closed(id)` is called at the end.
 */
export function deliveryDetail({ store, actions = [], facts, heading = (number) => `Attempt ${number}`, states, at, now = Date.now, gone, closed }) {
  const element = el('section', { class: 'panel detail', 'aria-label': 'Delivery', hidden: true });
  let id;
  let seen;
  let next;

  async function read() {
    const asked = id;
    if (!asked) return;
    try {
      const detail = await store.detail(asked);
      if (asked !== id) return;
      // The id of an event alone is its newest delivery.
      if (detail.id !== id) setPlace(...at(), detail.id);
      id = detail.id;
      show(detail);
    } catch (error) {
      if (asked === id && error.status === 404) showGone();
      else {
        if (asked === id) close();
        failed(error);
      }
    }
  }

  const head = (title, ...more) => el('header', {}, el('h2', { tabindex: '-1', dir: 'auto' }, title), more,
    el('button', { class: 'quiet', 'data-focus': 'close', 'aria-label': 'Close the delivery', onclick: close }, 'Close'));

  /** The heading has the focus. What was above the list stays above the delivery. */
  function entered() {
    element.querySelector('h2').focus({ preventScroll: true });
    const { top } = element.getBoundingClientRect();
    if (top < 0) scrollBy(0, top - document.getElementById('main').offsetTop);
    else if (top > innerHeight / 2) scrollBy(0, top - 16);
  }

  function showGone() {
    next = undefined;
    element.dataset.delivery = id;
    element.hidden = false;
    fill(element, head('Not kept any more'), el('p', { role: 'status' }, gone(id)));
    entered();
  }

  function show(detail) {
    const isNew = element.dataset.delivery !== detail.id;
    const result = isNew ? el('div', { class: 'result', 'aria-live': 'polite' }) : element.querySelector('.result');
    const opened = new Set([...element.querySelectorAll('details[open]')].map((one) => one.dataset.attempt));
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
    element.dataset.delivery = detail.id;
    element.dataset.state = detail.state;
    element.hidden = false;
    next = el('dd', { class: 'number' });
    const last = detail.attempts.at(-1);
    const words = wordsOf(detail, last && !isAccepted(last) ? last : undefined);
    const buttons = actions.filter(({ fits }) => fits?.(detail) ?? true).map(({ label, about, run }) => el('button', {
      title: about, 'data-focus': label,
      onclick: acting(async () => fill(result, await run(detail))),
    }, label));
    fill(element,
      head(detail.eventType || '(no type)', stateBadge(detail.state, states)),
      el('dl', {}, facts(detail).map(([name, text]) => [el('dt', {}, name), el('dd', { dir: 'auto' }, text)]),
        detail.nextAttemptAt && [el('dt', {}, 'Next attempt'), next]),
      words && el('p', { class: 'refusal' }, words),
      buttons.length > 0 && el('p', { class: 'actions' }, buttons), result,
      detail.attempts.map((attempt, before) => attemptShown(attempt, before + 1, heading(before + 1),
        isNew || !opened.size ? before + 1 === detail.attempts.length : opened.has(String(before + 1)))),
      detail.attempts.length === 0 && el('p', { class: 'empty' }, 'No attempt has ended yet.'));
    next.dataset.due = detail.nextAttemptAt ?? '';
    tick();
    if (focused) element.querySelector(`[data-focus="${focused}"]`)?.focus();
    if (isNew) entered();
  }

  function tick() {
    if (next?.dataset.due) setText(next, `${moment(next.dataset.due)}, in ${span(Date.parse(next.dataset.due) - now())}`);
  }

  function close() {
    if (!id) return;
    const was = id;
    id = undefined;
    if (element.isConnected) setPlace(...at());
    element.hidden = true;
    delete element.dataset.delivery;
    element.replaceChildren();
    closed(was);
  }

  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !id || !element.isConnected || event.target.closest('input, textarea, select') || document.querySelector('dialog[open]')) return;
    close();
  });
  const readAgain = drawnOnce(read);
  store.watch((taken) => {
    if (!id) return;
    const found = taken?.id === id ? taken : store.find(id);
    const current = JSON.stringify(found);
    // A delivery that the filter leaves out is in no list: only its own changes count.
    if (current === seen || (taken && !found)) return;
    seen = current;
    readAgain();
  });
  setInterval(tick, 500);
  return {
    element,
    close,
    async open(delivery) {
      id = delivery;
      setPlace(...at(), id);
      seen = JSON.stringify(store.find(id));
      await read();
      return id;
    },
  };
}

function attemptShown(attempt, number, heading, isOpen) {
  const { request, answer, fault } = attempt;
  const sent = request && [el('h3', {}, 'Request'), el('p', { class: 'line' }, `${request.method} ${request.url}`),
    headersShown(request.headers, 'Headers of the request'),
    request.body === null ? el('p', { class: 'dim' }, 'Its body was not read.') : bodyShown(request.body, request.bytes)];
  const answered = answer && [el('h3', {}, 'Answer'), el('p', { class: isAccepted(attempt) ? 'line' : 'line failed' }, String(answer.status), attempt.meaning && `: ${attempt.meaning}`),
    headersShown(answer.headers, 'Headers of the answer'),
    answer.body === null ? el('p', { class: 'dim' }, answer.note ?? 'Of this answer only the status is kept.') : bodyShown(answer.body, answer.bytes)];
  return el('details', { class: 'attempt', open: isOpen, 'data-attempt': number },
    el('summary', { 'data-focus': `attempt-${number}` }, el('span', { class: 'grow' }, heading),
      el('span', { class: 'number' }, moment(attempt.at)),
      el('span', { class: `badge ${isAccepted(attempt) ? 'good' : 'bad'}` }, String(attempt.status ?? 'no answer')),
      el('span', { class: 'number dim' }, milliseconds(attempt.durationMs)),
      fault && el('span', { class: 'badge wait' }, `fault: ${fault}`)),
    // What was answered explains a failure, so it comes first there.
    isAccepted(attempt) ? [sent, answered] : [answered, sent],
    !answer && attempt.error && [el('h3', {}, 'No answer'), el('p', { class: 'refusal' }, attempt.error)]);
}

export function headersShown(headers, label) {
  if (headers.length === 0) return null;
  return el('table', { class: 'headers', 'aria-label': label }, el('tbody', {},
    headers.map(([name, value]) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, value)))));
}
