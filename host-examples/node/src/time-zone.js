// The offsets of a time zone to UTC as a list, which the engine takes as `time_offsets`.
//
// The table of time zones is that of the runtime. Equal lists give equal texts in every host.

import { invalid } from "./errors.js";

/** The years of a list: before and after them the offset of its first or last entry applies. */
const FIRST = Date.UTC(2000, 0, 1);
const LAST = Date.UTC(2038, 0, 1);
const MINUTE = 60_000;
/** A week, in milliseconds: no zone changes its offset twice within this time. */
const STEP = 7 * 24 * 60 * MINUTE;

/** Returns a function from a time to the minutes that `zone` is ahead of UTC. */
function clockOf(zone) {
  let format;
  try {
    format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  } catch {
    throw invalid(`\`timezone\` must be the name of a time zone, got \`${zone}\``);
  }
  return (time) => {
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(format.format(time));
    const ahead = sign === undefined ? 0 : Number(hours) * 60 + Number(minutes);
    return sign === "-" ? -ahead : ahead;
  };
}

/** Returns the first minute after `from`, at most `to`, whose offset is that of `to`. */
function changeBetween(minutesAt, from, to) {
  const wanted = minutesAt(to);
  let [before, after] = [from, to];
  while (after - before > MINUTE) {
    const middle = before + Math.floor((after - before) / MINUTE / 2) * MINUTE;
    if (minutesAt(middle) === wanted) after = middle;
    else before = middle;
  }
  return after;
}

/** Returns the offsets of a time zone by its name, ascending, as `{since, minutes}`. */
export function offsetsOf(zone) {
  const minutesAt = clockOf(zone);
  const offsets = [{ since: 0, minutes: minutesAt(FIRST) }];
  for (let at = FIRST; at < LAST; at += STEP) {
    const next = Math.min(at + STEP, LAST);
    const minutes = minutesAt(next);
    if (minutes === offsets.at(-1).minutes) continue;
    offsets.push({ since: changeBetween(minutesAt, at, next), minutes });
  }
  return offsets;
}
