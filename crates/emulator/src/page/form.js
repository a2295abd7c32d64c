// Forms in a dialog: fields with labels, the server's refusal below them, the focus back where it was at the end.

import { el, fill } from './dom.js';

let ids = 0;

/** A field with its label. `input` is the element, `hint` an optional text. */
export function field(label, input, hint) {
  input.id ||= `field-${(ids += 1)}`;
  const help = hint && el('small', { id: `${input.id}-hint` }, hint);
  if (help) input.setAttribute('aria-describedby', help.id);
  return el('div', { class: 'field' }, el('label', { for: input.id }, label), input, help);
}

export function choice(options, chosen) {
  const shown = options.map(([value, label]) => el('option', { value, selected: value === chosen }, label ?? value));
  return el('select', {}, shown);
}

/** Opens a form. `send` is called at its end, and the dialog closes where it does not throw. */
export function openForm({ title, fields, button, send, danger, isWide = false }) {
  const error = el('p', { class: 'refusal', role: 'alert' });
  const dialog = el('dialog', { 'aria-label': title, class: isWide && 'wide' });
  const submit = el('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, button);
  const form = el('form', { method: 'dialog' }, el('h2', {}, title), fields, error,
    el('p', { class: 'actions' }, el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), submit));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    // A button that is disabled loses the focus.
    if (submit.ariaBusy) return;
    submit.ariaBusy = 'true';
    try {
      await send();
      dialog.close();
    } catch (refused) {
      fill(error, withBoxes(form, refused.message));
    } finally {
      submit.ariaBusy = null;
    }
  });
  dialog.addEventListener('close', () => dialog.remove());
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
}

/** Names the boxes of a form in place of the fields of its JSON: `expiresAt` is the box Expires at. */
function withBoxes(form, message) {
  const boxes = [...form.querySelectorAll('label, legend')].map((label) => label.textContent);
  const boxOf = (name) => boxes.find((box) => box && name.toLowerCase().startsWith(box.replaceAll(' ', '').toLowerCase()));
  return message.replace(/`(\w+)`/g, (field, name) => boxOf(name) ?? field);
}

/** Asks before something is lost. */
export const confirmed = (title, text, button, send) =>
  openForm({ title, fields: [el('p', {}, text)], button, send, danger: true });

/** Shows a secret once, with a button to copy it. */
export function shownOnce(title, about, secret, copy) {
  const dialog = el('dialog', { 'aria-label': title },
    el('h2', {}, title), el('p', {}, about), el('output', { class: 'secret' }, secret),
    el('p', { class: 'actions' }, el('button', { onclick: () => copy(secret, 'Secret') }, 'Copy'),
      el('button', { class: 'primary', onclick: () => dialog.close() }, 'I have it')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
