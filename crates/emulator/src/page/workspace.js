// The workspace as a whole: what the specification leaves open, snapshots, and the way back to the seed.

import { control } from './api.js';
import { el, fill } from './dom.js';
import { choice, confirmed } from './form.js';
import { membersPanel, pagesPanel } from './people.js';
import { acting, done, failed } from './told.js';

const TIERS = [['standard'], ['premium'], ['enterprise']];

export function workspaceSection({ resource }) {
  const switches = resource(() => 'switches', ['switches'], 'workspace');
  const workspace = resource(() => 'workspace', ['workspace'], 'workspace');
  const pages = resource(() => 'pages', ['page'], 'workspace');
  const body = el('tbody');

  switches.watch((all) => fill(body, Object.entries(all).map(([name, { value, values, about }]) => {
    const input = choice(values.map((one) => [one]), value);
    input.setAttribute('aria-label', name);
    input.addEventListener('change', acting(async () => {
      await control('PATCH', 'switches', { [name]: input.value }).finally(() => switches.load());
    }));
    return el('tr', { 'data-switch': name }, el('td', { class: 'main' }, el('code', {}, name), el('small', {}, about)), el('td', {}, input),
      el('td', { class: 'dim' }, value === values[0] ? '' : `default: ${values[0]}`));
  })));
  const tier = choice(TIERS, 'standard');
  tier.setAttribute('aria-label', 'Tier');
  tier.addEventListener('change', acting(async () => {
    await control('PATCH', 'workspace', { tier: tier.value }).finally(() => workspace.load());
  }));
  workspace.watch((now) => {
    tier.value = now.tier;
  });

  const file = el('input', { type: 'file', accept: 'application/json,.json', 'aria-label': 'Snapshot to restore' });
  file.addEventListener('change', async () => {
    const [chosen] = file.files;
    file.value = '';
    if (!chosen) return;
    try {
      const text = await chosen.text();
      const about = 'Rows, webhooks, deliveries, switches and the clock become those of the snapshot.';
      confirmed(`Restore ${chosen.name}?`, about, 'Restore', async () => {
        await control('PUT', 'snapshot', text);
        done('Restored');
      });
    } catch (error) {
      failed(error);
    }
  });
  const reset = el('button', { class: 'danger', onclick: () => confirmed('Return to the seed?',
    'Rows, switches, faults and webhooks become those of the start. Deliveries go, and the clock is as at the start.', 'Reset', async () => {
      await control('POST', 'reset');
      done('As at the start');
    }) }, 'Reset to the seed');

  return {
    resources: [switches, workspace, pages],
    element: el('div', { class: 'section' },
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'Everything')),
        el('p', { class: 'actions' },
          el('a', { class: 'button', href: '/_emulator/snapshot', download: 'hookgate-snapshot.json' }, 'Download a snapshot'),
          el('label', { class: 'button' }, 'Restore a snapshot', file), reset),
        el('p', { class: 'dim hint' }, 'A snapshot holds secrets and keys.'),
        el('p', { class: 'inline hint' }, 'Tier, which decides the rate: ', tier)),
      membersPanel(workspace), pagesPanel(pages),
      el('section', { class: 'panel' }, el('header', {}, el('h2', {}, 'What the specification leaves open')),
        el('div', { class: 'scroll' }, el('table', { class: 'list', 'aria-label': 'Switches' }, el('thead', {}, el('tr', {},
          ['Switch', 'Value', 'Changed'].map((name) => el('th', { scope: 'col' }, name)))), body)))),
  };
}
