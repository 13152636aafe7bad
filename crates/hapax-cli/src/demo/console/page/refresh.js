
// The page asks for everything again and again: quickly while something happens, and not at all while nobody looks.

const QUICK = 400;
const SLOW = 1200;
const FAILURES_MAX = 3;
let failures = 0;
let timer = null;
let asking = false;

async function refresh() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  let wait = SLOW;
  try {
    const overview = await read("/overview");
    failures = 0;
    show(overview);
    const moving = overview.keys.states.running || overview.keys.states.in_doubt;
    if (overview.storm?.under_way || overview.gateway.status !== "up" || moving) wait = QUICK;
  } catch {
    failures += 1;
  }
  asking = false;
  find("ended").hidden = failures < FAILURES_MAX;
  if (failures < FAILURES_MAX && !document.hidden) timer = setTimeout(refresh, wait);
}

function show(overview) {
  showGateway(overview.gateway, overview.keys, overview.now);
  showStorm(overview.storm);
  showKeys(overview.keys, overview.now);
  for (const part of ["cards", "charges"]) {
    const element = find(part);
    // Escaped where it is made; set only when it differs from what was set before.
    if (element.last !== overview[part]) element.innerHTML = element.last = overview[part];
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && failures < FAILURES_MAX) refresh();
});
refresh();
