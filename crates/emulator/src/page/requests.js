// The requests that the API answered, the newest first, and what is left of each key's rate.

import { el, keyed, setText } from './dom.js';
import { rateShown } from './keys.js';
import { timeShown } from './times.js';

const PAGE = 100;

export function requestsSection({ keys, clock, resource }) {
  const requests = resource(() => 'requests', ['request'], 'requests');
  let shown = PAGE;
  const rates = el('div', { class: 'rates' });
  const body = el('tbody');
  const table = el('table', { class: 'list', 'aria-label': 'API requests' }, el('thead', {}, el('tr', {},
    ['Time', 'Request', 'Key', 'Status', 'Took', 'Left'].map((name, at) => el('th', { scope: 'col', class: at > 3 ? 'right' : null }, name)))), body);
  const none = el('p', { class: 'empty' }, 'No request yet. The API is at ', el('code', {}, `${location.origin}/api/v1`), '.');
  const more = el('button', { class: 'quiet', onclick: () => {
    shown += PAGE;
    draw();
  } }, 'Show more');

  function draw() {
    const all = requests.value ?? [];
    const newest = all.slice(-shown).reverse();
    body.replaceChildren(...newest.map((request) => el('tr', { 'data-status': request.status },
      el('td', { class: 'number' }, timeShown(request.at, clock.now())),
      el('td', { class: 'main break' }, el('span', { class: 'method' }, request.method), ` ${request.path}`),
      el('td', {}, request.key ?? el('span', { class: 'dim' }, 'none')),
      el('td', { class: 'number' }, el('span', { class: `badge ${request.status < 400 ? 'good' : 'bad'}` }, String(request.status)),
        request.code && el('small', {}, ` ${request.code}`)),
      el('td', { class: 'number right' }, `${request.durationMs} ms`),
      el('td', { class: 'number right' }, request.rate ? `${request.rate.remaining} / ${request.rate.limit}` : ''))));
    table.hidden = all.length === 0;
    none.hidden = all.length > 0;
    more.hidden = all.length <= shown;
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
  requests.watch(draw);
  keys.watch(drawRates);
  setInterval(() => rates.isConnected && drawRates(), 1000);
  return {
    resources: [requests],
    element: el('div', { class: 'section' },
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'Rate windows')), rates),
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'API requests')), el('div', { class: 'scroll' }, table, none, more))),
  };
}
