// The page of `hookgate emulate`: its sections, the stream of changes, and the part of the address behind `#` that says what is shown.

import { control } from './api.js';
import { deliveryStore } from './store.js';
import { drawnOnce, el, fill } from './dom.js';
import { failed } from './told.js';
import { listen } from './live.js';
import { place } from './place.js';
import { resource } from './resource.js';
import { tickingClock } from './ticking.js';
import { topBar } from './top.js';
import { rowsSection } from './rows.js';
import { webhooksSection } from './webhooks.js';
import { keysSection } from './keys.js';
import { requestsSection } from './requests.js';
import { triggersSection } from './triggers.js';
import { faultsSection } from './faults.js';
import { workspaceSection } from './workspace.js';

const KINDS = ['row', 'event', 'delivery', 'subscription', 'request', 'models', 'keys', 'faults', 'switches', 'clock', 'reset', 'trigger',
  'triggers', 'workspace', 'page', 'missed'];
const CLOCK_AGAIN_MS = 5000;
const DELIVERIES_OF_ROWS = 12;

/** Who wants to hear of which kind of event. */
function eventStream() {
  const takers = new Map(KINDS.map((kind) => [kind, []]));
  return {
    on: (kind, take) => takers.get(kind).push(take),
    take: (kind, data) => takers.get(kind).forEach((take) => take(data)),
  };
}

const stream = eventStream();
const clock = tickingClock();
// Each has its own filter.
const stores = { rows: deliveryStore('/_emulator/', DELIVERIES_OF_ROWS), webhooks: deliveryStore('/_emulator/') };
const shows = (id) => () => shown === id;
const context = {
  stream, clock,
  models: resource(stream, () => 'models', ['models', 'row']),
  subscriptions: resource(stream, () => 'subscriptions', ['subscription']),
  keys: resource(stream, () => 'keys', ['keys', 'request', 'clock', 'switches', 'workspace'], () => shown === 'keys' || shown === 'requests'),
  faults: resource(stream, () => 'faults', ['faults', 'delivery', 'request']),
  resource: (path, kinds, id) => resource(stream, path, kinds, shows(id)),
};

const sections = [
  ['rows', 'Rows', rowsSection], ['webhooks', 'Webhooks', webhooksSection], ['keys', 'Keys', keysSection],
  ['requests', 'API requests', requestsSection], ['triggers', 'Triggers', triggersSection], ['faults', 'Faults', faultsSection],
  ['workspace', 'Workspace', workspaceSection],
].map(([id, title, make]) => ({ id, title, part: make({ ...context, store: stores[id] }), link: el('a', { href: `#${id}` }, title) }));
let shown;

function show() {
  const [id, ...rest] = place();
  const found = sections.find((one) => one.id === id);
  // As after the link that skips to the content.
  if (!found && shown) return;
  const section = found ?? sections[0];
  const main = document.getElementById('main');
  if (shown !== section.id) {
    shown = section.id;
    fill(main, section.part.element);
    document.title = `${section.title} · hookgate emulate`;
    for (const { id: other, link } of sections) {
      if (other === shown) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }
  section.part.show?.(...rest);
  for (const one of [context.keys, ...section.part.resources ?? []]) one.refresh();
}

const top = topBar(context);
fill(document.getElementById('top'), top.element);
fill(document.getElementById('sections'), sections.map(({ link }) => link));

const clockAgain = async () => clock.set((await control('GET', 'clock')).now);
const loadAll = () => Promise.all(Object.values(stores).map((store) => store.load()));
const deliveriesAgain = drawnOnce(() => loadAll().catch(failed));
for (const store of Object.values(stores)) stream.on('delivery', store.take);
stream.on('clock', ({ now }) => clock.set(now));
for (const kind of ['missed', 'reset']) {
  stream.on(kind, deliveriesAgain);
  stream.on(kind, () => clockAgain().catch(() => {}));
}
setInterval(() => clockAgain().catch(() => {}), CLOCK_AGAIN_MS);

async function start() {
  await Promise.all([clockAgain(), context.models.load(), context.subscriptions.load(), context.faults.load(), loadAll()]);
  addEventListener('hashchange', show);
  show();
}
listen('/_emulator/stream', KINDS, stream.take, top.connected);
start().catch(failed);
