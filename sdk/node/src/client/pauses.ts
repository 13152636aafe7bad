/** How often a request is tried, and how long it waits in between. */
export interface Schedule {
  readonly attemptsMax: number;
  /** What the first pause is drawn from; it doubles with every attempt. */
  readonly pauseMs: number;
  readonly pauseMsMax: number;
}

/** The longest that a server may ask to be left alone. */
const TOLD_MS_MAX = 5 * 60 * 1000;

/** The pause after so many failures: anything up to the doubled base, and never less than was asked for. */
export function pauseAfter(schedule: Schedule, failures: number, toldMs: number | undefined): number | undefined {
  if (failures >= schedule.attemptsMax) return undefined;
  const doubled = Math.min(schedule.pauseMs * 2 ** (failures - 1), schedule.pauseMsMax);
  return Math.max(Math.random() * doubled, spread(schedule, toldMs));
}

/** The pause while an earlier attempt is at work. */
export function pauseInFlight(schedule: Schedule, toldMs: number | undefined): number {
  return Math.max(schedule.pauseMs * (1 + Math.random()), spread(schedule, toldMs));
}

/** A little more than what was asked for, so that not all come back at once. */
function spread(schedule: Schedule, toldMs: number | undefined): number {
  if (toldMs === undefined) return 0;
  const asked = Math.min(toldMs, TOLD_MS_MAX);
  return asked + Math.random() * Math.max(asked / 4, schedule.pauseMs);
}
