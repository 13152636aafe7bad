
// The gateway: whether it is up, and what became of the keys that were under way when it was killed.

const KILLED_BY = { you: "by you", storm: "by the storm", somebody_else: "by somebody else" };

function showGateway(gateway, keys, now) {
  const { status, pid, since, why } = gateway;
  const box = find("flow-gateway");
  box.className = status === "up" ? "up" : "down";
  say("flow-status", status === "up" ? `up, process ${pid}` : "DOWN");
  say("flow-requests", `${count(keys.requests, "request")} sent`);
  say("flow-charges", `${count(keys.charges, "charge")}, ${keys.doubled} doubled`);
  find("flow-charges").className = keys.doubled ? "ill strong" : "";
  const told = {
    up: () => `Up as process ${pid} since ${clock(since).slice(0, 8)}.`,
    down: () => "Down. What was under way is written in its file; it is started again in a moment.",
    lost: () => `It did not start again: ${why}`,
  };
  say("gateway-status", told[status]());
  find("kill").disabled = status === "down";
  say("kill", status === "lost" ? "Start it again" : "Kill it now (SIGKILL)");
  find("order-kill").disabled = status !== "up";
  showKills(gateway.kills);
}

function showKills(kills) {
  const told = kills.map((kill) => {
    const back = kill.back_at
      ? `back after ${span(new Date(kill.back_at) - new Date(kill.at))}`
      : "not back yet";
    const first = `${clock(kill.at).slice(0, 8)}: process ${kill.pid} killed ${KILLED_BY[kill.by]}, ${back}.`;
    if (kill.left === null) return first;
    if (kill.left === 0) return `${first} No key was under way.`;
    const now = Object.entries(kill.now).map(([state, number]) => `${number} ${word(state)}`);
    return `${first} Left ${count(kill.left, "key")} running; now ${now.join(", ")}.`;
  });
  const list = find("kills");
  told.forEach((text, at) => {
    const item = list.children[at] ?? list.appendChild(make("li"));
    if (item.textContent !== text) item.textContent = text;
  });
}

press("kill", async () => {
  notice("kill-result", "");
  await act("/kill", {});
}, (why) => notice("kill-result", `Not killed: ${why}.`));
