
// The storm: how far it is, and what came of it.

function showStorm(storm) {
  find("storm").disabled = Boolean(storm?.under_way);
  if (!storm) return;
  const bar = find("storm-progress");
  bar.max = storm.clients;
  bar.value = storm.done;
  const state = storm.under_way ? "under way" : "over";
  say("storm-done", `${storm.done} of ${storm.clients} clients answered, ${storm.seconds.toFixed(1)} s, ${state}`);
  if (storm.under_way) {
    say("storm-result", storm.kill ? "Under way; the gateway is killed in the middle." : "Under way.");
    return;
  }
  const killed = storm.killed ? ", the gateway killed in the middle" : "";
  const said = [
    stormLine("With Hapax", storm, storm.with, killed),
    stormLine("Without", storm, storm.without, ""),
  ];
  const result = find("storm-result");
  if (result.textContent !== said.map((line) => line.textContent).join("")) result.replaceChildren(...said);
}

function stormLine(name, storm, side, more) {
  const parts = [
    count(side.requests, "request"), count(storm.orders, "order"), count(side.charges, "charge"),
    `${side.doubled} doubled`,
  ];
  if (side.missing) parts.push(`${side.missing} not charged`);
  if (side.given_up) parts.push(`${count(side.given_up, "client")} gave up`);
  const isWell = side.doubled + side.missing + side.given_up === 0;
  return make("p", isWell ? "well" : "ill", make("b", "", `${name}: `), parts.join(", ") + more + ".");
}

press("storm", async () => {
  notice("storm-refused", "");
  const wanted = {
    orders: Number(find("storm-orders").value),
    copies: Number(find("storm-copies").value),
    kill: find("storm-kill").checked,
  };
  await act("/storm", wanted);
}, (why) => notice("storm-refused", `Not started: ${why}.`));
