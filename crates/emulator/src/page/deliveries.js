// A list of deliveries, and the one that is open beside it.

import { deliveryDetail } from './delivery_detail.js';
import { deliveryList } from './delivery_list.js';
import { acting } from './told.js';

/** `shared` is for both parts; the other two are the settings of one. `open(id)` opens a delivery, and the list has the focus again at its end. */
export function deliveries(shared, ofList, ofDetail) {
  const detail = deliveryDetail({
    ...shared, ...ofDetail,
    closed(id) {
      list.choose(undefined);
      list.focus(id);
    },
  });
  const open = acting(async (id) => {
    list.choose(id);
    list.choose(await detail.open(id));
  });
  const list = deliveryList({ ...shared, ...ofList, open });
  return { list, detail, open };
}
