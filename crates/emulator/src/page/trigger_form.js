// The form of an inbound trigger. The secret of its authentication is not shown again: left empty, it stays.

import { control, part } from './api.js';
import { el } from './dom.js';
import { choice, field, openForm } from './form.js';

const METHODS = [['GET'], ['POST'], ['PUT'], ['PATCH'], ['DELETE']];
const MODES = [['none', 'none'], ['basic', 'Basic'], ['header', 'a header']];
const ANSWERS = [['immediate', 'at once'], ['afterCompletion', 'after completion']];
/** By the mode of an authentication: the fields of its name and of its secret. */
const FIELDS = { none: [], basic: ['username', 'password'], header: ['name', 'value'] };

/** Adds a trigger, or changes the one that is given. */
export function triggerForm(trigger, saved) {
  const { auth = { mode: 'none' }, response = {} } = trigger ?? {};
  const id = el('input', { value: trigger?.workflowId ?? '', autocomplete: 'off', required: true, readonly: trigger && true });
  const method = choice(METHODS, trigger?.method ?? 'POST');
  const path = el('input', { value: trigger?.path ?? '', placeholder: '/webhooks/<workflow id>', autocomplete: 'off' });
  const mode = choice(MODES, auth.mode);
  const name = el('input', { value: auth.username ?? auth.name ?? '', autocomplete: 'off' });
  const secret = el('input', { type: 'password', autocomplete: 'new-password', placeholder: trigger ? 'as it is' : '' });
  const answers = choice(ANSWERS, response.mode ?? 'immediate');
  const status = el('input', { type: 'number', min: '200', max: '599', value: response.status ?? 200 });
  const template = el('textarea', { rows: '5', spellcheck: 'false',
    value: response.template === undefined || response.template === null ? '' : JSON.stringify(response.template, null, 2) });

  openForm({
    title: trigger ? `Change ${trigger.workflowId}` : 'New trigger', button: trigger ? 'Save' : 'Add',
    fields: [field('Workflow', id), field('Method', method), field('Path', path), field('Authentication', mode),
      field('User or header', name), field('Password or value', secret), field('Answers', answers), field('Status', status),
      field('Template', template, 'JSON, with {{trigger.body.a}}, {{trigger.headers.x}} and {{trigger.query.y}}')],
    async send() {
      const settings = {
        method: method.value,
        response: { mode: answers.value, status: Number(status.value), template: parsed(template.value) },
      };
      if (path.value.trim()) settings.path = path.value.trim();
      const [named, hidden] = FIELDS[mode.value];
      const isSame = trigger && mode.value === auth.mode && (!named || (name.value === auth[named] && !secret.value));
      if (!isSame) settings.auth = named ? { mode: mode.value, [named]: name.value, [hidden]: secret.value } : { mode: mode.value };
      if (trigger) await control('PATCH', `triggers/${part(trigger.workflowId)}?method=${trigger.method}`, settings);
      else await control('POST', 'triggers', { workflowId: id.value.trim(), ...settings });
      await saved();
    },
  });
}

function parsed(text) {
  if (!text.trim()) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The template is not JSON: ${error.message}`);
  }
}
