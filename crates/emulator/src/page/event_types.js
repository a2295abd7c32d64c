// The event types of the specification (a test compares them with the emulator's), and data to begin with for those that no row makes.

export const EVENT_TYPES = [
  'row.created', 'row.updated', 'row.deleted', 'page.created', 'page.updated', 'page.deleted', 'member.invited', 'member.removed',
];

export const SAMPLES = {
  page: { pageId: 'page_1', title: 'Home' },
  member: { memberId: 'usr_9', email: 'new@example.com' },
  row: { datamodelId: 'dm_orders', rowId: 'row_1' },
};
