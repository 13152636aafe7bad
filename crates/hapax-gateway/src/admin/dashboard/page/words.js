// Numbers, spans and times as people read them.

export const count = (number) => Number(number).toLocaleString("en");
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${Number(number) === 1 ? one : many}`;

/// Two digits of cents, and no more than that.
export const money = (amount) => amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function span(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds / 60) % 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds / 3600) % 24)} h`;
}

export function millis(value) {
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return `${(value / 1000).toFixed(1)} s`;
}

export function perSecond(value) {
  return value >= 10 || value === 0 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

export function bytes(value) {
  if (value < 1024) return counted(value, "byte");
  if (value < 1 << 20) return `${(value / 1024).toFixed(1)} KiB`;
  return `${(value / (1 << 20)).toFixed(1)} MiB`;
}

/// Microseconds are more than a browser reads.
export const instant = (text) => new Date(text.replace(/(\.\d{3})\d+/, "$1"));
export const secondsBetween = (from, to) => Math.max(0, (instant(to) - instant(from)) / 1000);

/// Day and time of day, here.
export function clock(text) {
  const at = instant(text);
  const day = at.toLocaleDateString("en-CA");
  return `${day} ${at.toLocaleTimeString("en-GB")}`;
}

export const timeOfDay = (text) => instant(text).toLocaleTimeString("en-GB");

export const STATES = ["pending", "running", "completed", "failed", "in_doubt", "released", "buried"];

/// What led to a doubt.
export const DOUBTS = {
  unanswered: "it was sent, and no answer came back",
  interrupted: "it was cut off before its answer came",
  owner_vanished: "whoever ran it vanished",
};

/// What a request meets.
export const ANSWERS = {
  runs: "runs",
  takes_over: "takes over",
  waits: "is told to wait (409)",
  replays: "gets the stored answer",
  refused_in_doubt: "is refused, because the outcome is unknown (409)",
  refused_mismatch: "is refused, because the key was used for another request (422)",
  refused_gone: "is refused, because the outcome is forgotten (410)",
};

export const RECOVERIES = {
  resend: "sent again with the same key",
  probe: "the upstream is asked",
  hold: "held for a person",
};
