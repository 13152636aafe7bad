
// Orders that somebody on this page places.

let last = null;

const cents = () => Math.round(Number(find("amount").value) * 100);

async function order(wanted) {
  say("order-result", "Sent; waiting for the answer.");
  const report = await act("/orders", wanted);
  last = { key: report.key, amount: last?.key === report.key ? last.amount : report.amount };
  const told = make("p", report.replayed ? "well strong" : "strong", `${report.key}: ${report.told}`);
  const shown = [told];
  if (report.body) shown.push(make("p", "body mono", report.body.trim()));
  if (report.status === null) {
    shown.push(make("p", "", "Was it charged? The client cannot know. Send the same again to find out."));
  }
  find("order-result").replaceChildren(...shown);
  find("order-again").disabled = find("order-other").disabled = false;
  openKey(report.key);
}

const orderFailed = (why) => say("order-result", `Not sent: ${why}`);

press("order-new", () => order({ amount: cents() }), orderFailed);
press("order-kill", () => order({ amount: cents(), kill: true }), orderFailed);
press("order-again", () => order({ amount: last.amount, key: last.key }), orderFailed);
press("order-other", () => order({ amount: last.amount + 100, key: last.key }), orderFailed);
