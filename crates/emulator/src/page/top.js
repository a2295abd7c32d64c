// The bar at the top: the workspace, the emulator's time with the steps that it can take, and the connection.

import { control } from './api.js';
import { connectionBadge } from './connection.js';
import { el, fill, setText } from './dom.js';
import { moment } from './times.js';
import { acting, done } from './told.js';

/** The waits of the retry schedule, and a day. */
const STEPS = ['1m', '5m', '30m', '2h', '1d'];

export function topBar({ clock, stream, faults }) {
  const workspace = el('span', { class: 'dim', id: 'workspace-id' });
  const time = el('time', { id: 'now', class: 'number', 'aria-label': 'Time of the emulator' });
  const connection = connectionBadge();
  const fault = el('a', { id: 'faults-on', class: 'badge wait', href: '#faults' });
  faults.watch((all) => {
    // One that has come as often as it was asked for changes nothing any more.
    const on = all.filter(({ first, hits }) => first === null || hits < first).map((one) => one.fault);
    fault.hidden = on.length === 0;
    setText(fault, on.length === 1 ? `fault on: ${on[0]}` : `${on.length} faults on`);
    fault.title = on.join(', ');
  });
  const by = el('input', { size: '7', placeholder: '26h36m', 'aria-label': 'Time to pass, such as 90s, 26h36m or 2d' });

  async function advance(sum) {
    const { now, attempts } = await control('POST', 'clock/advance', { by: sum }).catch(({ message }) => {
      // The server names the field of its JSON.
      throw new Error(message.replace('`by`', 'The time to pass'));
    });
    clock.set(now);
    tick();
    done(`${sum} passed, ${attempts === 1 ? '1 attempt' : `${attempts} attempts`} made`);
  }
  const steps = STEPS.map((sum) => el('button', { onclick: acting(() => advance(sum)), title: `Pass ${sum}` }, `+${sum}`));
  const form = el('form', { class: 'steps', 'aria-label': 'Pass time', onsubmit: (event) => {
    event.preventDefault();
    if (by.value.trim()) acting(() => advance(by.value.trim()))();
  } }, steps, by, el('button', {}, 'Pass'));

  const tick = () => {
    const iso = clock.iso();
    time.setAttribute('datetime', iso);
    setText(time, moment(iso));
  };
  setInterval(tick, 250);

  async function readWorkspace() {
    const { data } = await control('GET', 'workspace');
    fill(workspace, `${data.id} · ${data.tier}`);
  }
  for (const kind of ['missed', 'reset', 'workspace']) stream.on(kind, () => readWorkspace().catch(() => {}));
  readWorkspace().catch(() => {});

  return {
    element: [el('h1', {}, 'hookgate emulate'), workspace, connection.element, el('span', { role: 'status' }, fault), el('div', { class: 'clock' }, time, form)],
    connected: connection.set,
  };
}
