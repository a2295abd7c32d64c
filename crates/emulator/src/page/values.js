// Values of the nine property types: as a text in a cell, and as the input in which a person writes one.

import { el } from './dom.js';

const isList = (type) => type === 'MULTI_SELECT' || type === 'RELATION';

/** The text of a value in a cell. */
export function shownValue({ type, options }, value) {
  if (value === undefined || value === null) return '';
  if (type === 'SELECT') return options?.find((option) => option.value === value)?.label || String(value);
  if (type === 'CHECKBOX') return value ? 'yes' : 'no';
  if (isList(type) && Array.isArray(value)) return value.join(', ');
  if (type === 'FILE' && Array.isArray(value)) return value.map((file) => file?.name ?? '').join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** An input with this value. */
export function inputFor(property, value) {
  const { type, options } = property;
  if (type === 'SELECT') return choices([['', ''], ...(options ?? []).map((one) => [one.value, one.label || one.value])], value ?? '');
  if (type === 'CHECKBOX') return choices([['', ''], ['true', 'yes'], ['false', 'no']], value === undefined || value === null ? '' : String(value));
  const text = type === 'FILE' && value ? JSON.stringify(value) : shownValue(property, value);
  const hints = { DATE: '2026-01-31 or with a time', MULTI_SELECT: 'one, two', RELATION: 'row ids', FILE: '[{"url", "name"}]' };
  const isNumber = type === 'NUMBER' || type === 'CURRENCY';
  return el('input', { value: text, placeholder: hints[type], inputmode: isNumber ? 'decimal' : null, autocomplete: 'off', spellcheck: 'false' });
}

function choices(pairs, chosen) {
  return el('select', {}, pairs.map(([value, label]) => el('option', { value, selected: value === chosen }, label)));
}

/** The value that a person wrote. A text that does not fit its type is sent as it is: the server says what it expected. */
export function valueOf({ type }, input) {
  const text = input.value;
  if (text.trim() === '') return null;
  if (type === 'CHECKBOX') return text === 'true';
  if (isList(type)) return text.split(',').map((item) => item.trim()).filter((item) => item !== '');
  if (type === 'NUMBER' || type === 'CURRENCY') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === 'FILE') {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}
