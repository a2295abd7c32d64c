// Times as texts. Each is UTC, as in the API.

/** `2026-11-23 05:12:09` of a time in ISO 8601; the text itself where it is none. */
export function moment(text) {
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(text ?? '');
  return found ? `${found[1]} ${found[2]}` : text ?? '';
}

/** The time of the day alone. */
const timeOfDay = (text) => moment(text).slice(11) || (text ?? '');

/** The time of the day, after its date where that is not the day of `now`. */
export function timeShown(text, now) {
  const isToday = moment(text).slice(0, 10) === new Date(now).toISOString().slice(0, 10);
  return isToday ? timeOfDay(text) : moment(text);
}

/** `1 d 2 h`, `4 m 05 s`, `3 s`: the two largest units. */
export function span(milliseconds) {
  const all = Math.max(0, Math.ceil(milliseconds / 1000));
  const [days, hours, minutes, seconds] = [all / 86400, (all / 3600) % 24, (all / 60) % 60, all % 60].map(Math.floor);
  const two = (number) => String(number).padStart(2, '0');
  if (days) return `${days} d ${two(hours)} h`;
  if (hours) return `${hours} h ${two(minutes)} m`;
  if (minutes) return `${minutes} m ${two(seconds)} s`;
  return `${seconds} s`;
}
