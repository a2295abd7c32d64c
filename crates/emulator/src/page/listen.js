// The page of `hookgate listen --page`: the deliveries that arrived, each with its verdict. It only shows.

import { part, request } from './api.js';
import { connectionBadge } from './connection.js';
import { deliveryDetail } from './delivery_detail.js';
import { deliveryList } from './delivery_list.js';
import { drawnOnce, el, fill } from './dom.js';
import { explained } from './explained.js';
import { choice } from './form.js';
import { listen } from './live.js';
import { deliveryStore } from './store.js';
import { acting, failed } from './told.js';

const BASE = '/_listen/';
const VERDICTS = [['', 'every verdict'], ['done'], ['again'], ['runs_on'], ['failed'], ['refused']];

const store = deliveryStore(BASE);
const detail = deliveryDetail({
  store,
  closed: () => list.choose(undefined),
  facts: ({ facts }) => facts,
  actions: [{
    label: 'Why was it refused?', about: 'Tries the known mistakes with the secrets of this command',
    run: async ({ id }) => explained((await request('POST', `${BASE}deliveries/${part(id)}/explain`)).data),
  }],
});
const verdict = choice(VERDICTS, '');
verdict.setAttribute('aria-label', 'Verdict');
verdict.addEventListener('change', () => store.filter({ state: verdict.value }).catch(failed));
const list = deliveryList({
  store, label: 'Deliveries', empty: 'Nothing has arrived yet.', names: { state: 'Verdict', webhook: 'Subscription' },
  open: acting(async (id) => {
    list.choose(id);
    await detail.open(id);
  }),
});
const connection = connectionBadge();
fill(document.getElementById('top'), el('h1', {}, 'hookgate listen'), connection.element);
fill(document.getElementById('main'), el('div', { class: 'beside' },
  el('section', { class: 'panel' }, el('header', {}, el('h2', { class: 'grow' }, 'Deliveries'), verdict), list.element), detail.element));

const again = drawnOnce(() => store.load().catch(failed));
const take = { delivery: store.take, missed: again };
listen(`${BASE}stream`, Object.keys(take), (kind, data) => take[kind](data), connection.set);
again();
