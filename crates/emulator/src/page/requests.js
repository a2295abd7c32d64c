// The requests that the API answered, the newest first, each with its bodies, and what is left of each key's rate.

import { control, part } from './api.js';
import { el, keyed, setText } from './dom.js';
import { choice } from './form.js';
import { bodyShown } from './json.js';
import { rateShown } from './keys.js';
import { filters, setFilters } from './place.js';
import { asked, searchInput } from './search.js';
import { timeShown } from './times.js';
import { acting, failed } from './told.js';

const PAGE = 100;
const ANSWERS = [['', 'every status'], ['2', '2xx'], ['4', '4xx'], ['5', '5xx']];
const COLUMNS = ['Time', 'Request', 'Key', 'Status', 'Took', 'Left'];

export function requestsSection({ keys, clock, resource }) {
  const requests = resource(() => 'requests', ['request'], 'requests');
  let shown = PAGE;
  // The numbers of those that the search found; none where there is no search.
  let found;
  const rates = el('div', { class: 'rates' });
  const body = el('tbody');
  const table = el('table', { class: 'list', 'aria-label': 'API requests' }, el('thead', {}, el('tr', {},
    COLUMNS.map((name, at) => el('th', { scope: 'col', class: at > 3 ? 'right' : null }, name)))), body);
  const none = el('p', { class: 'empty' }, 'No request yet. The API is at ', el('code', {}, `${location.origin}/api/v1`), '.');
  const words = el('p', { role: 'status' });
  const noneFits = el('div', { class: 'empty' }, words, el('button', { onclick: () => {
    search.value = status.value = '';
    ask();
  } }, 'Clear filters'));
  const more = el('button', { class: 'quiet', onclick: () => {
    shown += PAGE;
    draw();
  } }, 'Show more');
  const search = searchInput({ label: 'Search requests', down: () => body.querySelector('button')?.focus() });
  const status = choice(ANSWERS, '');
  status.setAttribute('aria-label', 'Status');
  asked([search, status], () => ask());

  /** The server searches, since the list has no bodies. */
  async function ask() {
    if (search.isConnected) setFilters({ search: search.value, status: status.value });
    const text = search.value.trim();
    const fitting = text && await control('GET', `requests?search=${part(text)}`).catch(failed);
    if (text !== search.value.trim()) return;
    found = fitting ? new Set(fitting.data.map(({ number }) => number)) : undefined;
    draw();
  }

  /** A click opens the bodies below the request, and a second one closes them. */
  const turned = acting(async ({ currentTarget: row, target }) => {
    if (target.closest('.bodies')) return;
    const button = row.querySelector('button');
    const isOpen = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!isOpen));
    if (isOpen) return button.nextElementSibling?.remove();
    const { data } = await control('GET', `requests/${row.dataset.number}`);
    const parts = [['Request', data.request], ['Answer', data.answer]];
    button.after(el('div', { class: 'bodies' }, parts.map(([name, { body: text, bytes }]) => [el('h3', {}, name), bodyShown(text, bytes)])));
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !body.isConnected || event.target.closest('input, select, dialog')) return;
    for (const button of body.querySelectorAll('[aria-expanded=true]')) {
      button.click();
      button.focus();
    }
  });
  const make = ({ number, at, status: answered, method, path, key, code, durationMs, rate }) => el('tr', { 'data-number': number, 'data-status': answered, onclick: turned },
    el('td', { class: 'number' }, timeShown(at, clock.now())),
    el('td', { class: 'main break' }, el('button', { class: 'link', 'aria-expanded': 'false' }, el('span', { class: 'method' }, method), ` ${path}`)),
    el('td', {}, key ?? el('span', { class: 'dim' }, 'none')),
    el('td', { class: 'number' }, el('span', { class: `badge ${answered < 400 ? 'good' : 'bad'}` }, String(answered)), code && el('small', {}, ` ${code}`)),
    el('td', { class: 'number right' }, `${durationMs} ms`),
    el('td', { class: 'number right' }, rate ? `${rate.remaining} / ${rate.limit}` : ''));

  function draw() {
    const all = requests.value ?? [];
    const listed = all.filter((one) => String(one.status).startsWith(status.value) && (found?.has(one.number) ?? true));
    keyed(body, listed.slice(-shown).reverse(), (one) => one.number, make, () => {});
    table.hidden = listed.length === 0;
    none.hidden = all.length > 0;
    noneFits.hidden = listed.length > 0 || all.length === 0;
    setText(words, noneFits.hidden ? '' : `No request fits the filter (${all.length.toLocaleString('en')} searched).`);
    more.hidden = listed.length <= shown;
  }
  const makeRate = (key) => {
    const rate = rateShown();
    const element = el('div', { 'data-rate': key.name }, el('strong'), rate.element);
    element.rate = rate;
    return element;
  };
  const drawRates = () => keyed(rates, keys.value ?? [], (key) => key.name, makeRate, (element, key) => {
    setText(element.firstElementChild, key.name);
    element.rate.set(key.rate, clock.now());
  });
  requests.watch(ask);
  keys.watch(drawRates);
  setInterval(() => rates.isConnected && drawRates(), 1000);
  return {
    resources: [requests],
    show() {
      const given = filters();
      if (given) [search.value, status.value] = [given.search ?? '', given.status ?? ''];
      ask();
    },
    element: el('div', { class: 'section' },
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'Rate windows')), rates),
      el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'API requests'), el('search', { class: 'inline' }, search, status)),
        el('div', { class: 'scroll' }, table, none, noneFits, more))),
  };
}
