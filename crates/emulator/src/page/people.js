// Members and pages of the workspace: each change emits its event.

import { control, part } from './api.js';
import { el, fill } from './dom.js';
import { confirmed, field, openForm } from './form.js';
import { acting } from './told.js';

export function membersPanel(workspace) {
  const body = el('tbody');
  const remove = ({ id, name }) => confirmed(`Remove ${name}?`, 'member.removed is delivered.', 'Remove', async () => {
    await control('DELETE', `members/${part(id)}`);
    await workspace.load();
  });
  workspace.watch(({ members }) => fill(body, members.map((member) => el('tr', { 'data-member': member.id },
    el('td', { class: 'main' }, member.name, el('small', { class: 'id' }, member.id)), el('td', { class: 'break' }, member.email),
    el('td', { class: 'actions' }, el('button', { class: 'danger', onclick: () => remove(member) }, 'Remove'))))));

  function invite() {
    const name = el('input', { autocomplete: 'off', required: true });
    const email = el('input', { autocomplete: 'off', required: true });
    openForm({
      title: 'Invite a member', button: 'Invite', fields: [field('Name', name), field('Email', email)],
      async send() {
        await control('POST', 'members', { name: name.value, email: email.value });
        await workspace.load();
      },
    });
  }
  return el('section', { class: 'panel' },
    el('header', {}, el('h2', { class: 'grow' }, 'Members'), el('button', { onclick: invite }, 'Invite a member')),
    el('table', { class: 'list', 'aria-label': 'Members' }, body), el('p', { class: 'empty otherwise' }, 'The workspace has no members.'));
}

export function pagesPanel(pages) {
  const body = el('tbody');
  const remove = ({ id }) => acting(async () => {
    await control('DELETE', `pages/${part(id)}`);
    await pages.load();
  });
  pages.watch((all) => fill(body, all.map((page) => el('tr', { 'data-page': page.id },
    el('td', { class: 'main' }, typeof page.title === 'string' ? page.title : '(no title)', el('small', { class: 'id' }, page.id)),
    el('td', { class: 'actions' }, el('button', { onclick: () => edit(page) }, 'Change'),
      el('button', { class: 'danger', onclick: remove(page) }, 'Delete'))))));

  function edit(page) {
    const { id, ...fields } = page ?? { title: 'New page' };
    const json = el('textarea', { rows: '7', spellcheck: 'false', value: JSON.stringify(fields, null, 2) });
    openForm({
      title: page ? `Change ${id}` : 'New page', button: page ? 'Save' : 'Add',
      fields: [field('Fields', json, 'JSON: the specification does not show the fields of a page.')],
      async send() {
        let parsed;
        try {
          parsed = JSON.parse(json.value);
        } catch (error) {
          throw new Error(`The fields are no JSON: ${error.message}`);
        }
        await (page ? control('PATCH', `pages/${part(id)}`, parsed) : control('POST', 'pages', parsed));
        await pages.load();
      },
    });
  }
  return el('section', { class: 'panel' },
    el('header', {}, el('h2', { class: 'grow' }, 'Pages'), el('button', { onclick: () => edit() }, 'Add a page')),
    el('table', { class: 'list', 'aria-label': 'Pages' }, body), el('p', { class: 'empty otherwise' }, 'The workspace has no pages.'));
}
