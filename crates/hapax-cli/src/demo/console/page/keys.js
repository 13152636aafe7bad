
// The keys: a line for each, and its timeline when it is opened.

const STATES = ["pending", "running", "completed", "failed", "in_doubt"];
const FINISHED = ["completed", "failed"];
const lines = new Map();
let wantedOpen = null;

const openKey = (key) => {
  for (const line of lines.values()) if (line.key === key) line.details.open = true;
  wantedOpen = key;
};

function showKeys(keys, now) {
  say("keys-sum", `${count(keys.requests, "request")}, ${count(keys.all, "key")}, ${count(keys.charges, "charge")}, ${keys.doubled} doubled`);
  showStates(keys.states);
  say("keys-from", keys.trouble ? `As last known, because the records cannot be read: ${keys.trouble}.` : FROM[keys.read_from]);
  const more = keys.all - keys.newest.length;
  say("keys-more", more > 0 ? `${count(more, "older key")} not shown; hapax keys list shows them all.` : "");
  const list = find("keys");
  for (const [id, line] of lines) {
    if (keys.newest.some((key) => key.id === id) || line.details.open) continue;
    line.details.remove();
    lines.delete(id);
  }
  // Newest first: each line is put after the one before it, and moved only if it is not there.
  let before = null;
  for (const key of keys.newest) {
    const line = lines.get(key.id) ?? makeLine(key);
    showLine(line, key, now);
    const place = before ? before.nextSibling : list.firstChild;
    if (place !== line.details) list.insertBefore(line.details, place);
    before = line.details;
    if (key.key === wantedOpen) {
      line.details.open = true;
      wantedOpen = null;
    }
  }
}

const FROM = {
  admin_api: "States, fences and times are the gateway's own records, read from its admin API. Requests are counted by the demo's clients (curl is not), charges by the shop.",
  file: "The gateway is down: its records are read from its file, as it left them.",
};

function showStates(states) {
  const others = Object.keys(states).filter((state) => !STATES.includes(state));
  const list = find("states");
  [...STATES, ...others].forEach((state, at) => {
    const number = states[state] ?? 0;
    const item = list.children[at] ?? list.appendChild(make("li"));
    item.className = `state ${number ? state : "none"}`;
    const text = `${word(state)} ${number}`;
    if (item.textContent !== text) item.textContent = text;
  });
  while (list.children.length > STATES.length + others.length) list.lastChild.remove();
}

function makeLine({ id, key }) {
  const line = { id, key, shown: "", state: make("span"), counts: make("span", "counts"), age: make("span", "age") };
  line.opened = make("div", "opened", "…");
  const summary = make("summary", "", line.state, make("span", "key mono", key), line.counts, line.age);
  line.details = make("details", "", summary, line.opened);
  line.details.addEventListener("toggle", () => {
    line.shown = "";
    if (line.details.open) showTimeline(line);
  });
  lines.set(id, line);
  return line;
}

function showLine(line, key, now) {
  line.state.className = `state ${key.state}`;
  line.state.textContent = word(key.state);
  const requests = key.requests ? count(key.requests, "request") : "by others";
  line.counts.textContent = `${requests}, ${count(key.charges, "charge")}`;
  line.counts.classList.toggle("ill", key.charges > 1);
  line.age.textContent = `${span(Math.max(0, new Date(now) - new Date(key.created_at)))} ago`;
  line.latest = JSON.stringify([key.state, key.fence, key.requests, key.replays, key.charges]);
  const isOver = FINISHED.includes(key.state);
  if (line.details.open && (!isOver || line.shown !== line.latest)) showTimeline(line);
}

async function showTimeline(line) {
  const latest = line.latest;
  let timeline;
  try {
    timeline = await read(`/keys/${line.id}`);
  } catch (error) {
    line.opened.textContent = `Its timeline cannot be read just now: ${error.message}`;
    return;
  }
  line.shown = latest;
  const { requests, replays, charges, fence, recovery } = timeline;
  const counts = requests
    ? `${count(requests, "request")} by the demo's clients, ${count(replays, "replay")}`
    : "Requests were sent by others than the demo's clients";
  const facts = `${counts}; ${count(charges, "charge")} in the shop's ledger; fence ${fence}; recovery ${recovery}.`;
  const moments = timeline.moments.map((moment) => {
    const time = make("time", "", moment.at > timeline.now ? `in ${span(new Date(moment.at) - new Date(timeline.now))}` : clock(moment.at));
    time.dateTime = moment.at;
    time.title = moment.at;
    const className = moment.at > timeline.now ? `${moment.witness} ahead` : moment.witness;
    return make("li", className, time, make("span", "witness", moment.witness), make("span", "what", moment.what));
  });
  const inside = [make("p", "strong", facts), make("ol", "timeline", ...moments)];
  if (timeline.not_kept) inside.push(make("p", "hint", `${count(timeline.not_kept, "further event")} not kept.`));
  inside.push(make("p", "hint", `${timeline.because} ${timeline.advice}`));
  line.opened.replaceChildren(...inside);
}
