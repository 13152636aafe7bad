const find = (id) => document.getElementById(id);
const token = document.querySelector("meta[name=demo-token]").content;

/// An element with text, or with other elements in it.
function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside);
  return element;
}

const say = (id, text) => {
  const element = find(id);
  if (element.textContent !== text) element.textContent = text;
};

const count = (number, one, many = one + "s") => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
const word = (state) => state.replace("_", " ");

/// The time of day, to the millisecond.
function clock(at) {
  const date = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  const millis = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`;
}

function span(millis) {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60e3) return `${(millis / 1000).toFixed(1)} s`;
  if (millis < 3600e3) return `${Math.round(millis / 60e3)} min`;
  return `${Math.round(millis / 3600e3)} h`;
}

/// Says why something was not done; takes the notice away if there is nothing to say.
function notice(id, why) {
  const element = find(id);
  element.hidden = !why;
  element.textContent = why;
}

async function read(path) {
  const answer = await fetch(path);
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.error);
  return document;
}

async function act(path, wanted) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Demo-Token": token },
    body: JSON.stringify(wanted),
  });
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.error);
  return document;
}

/// Runs an action when a button is pressed; the button is off meanwhile.
function press(id, action, failed) {
  const button = find(id);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await action();
    } catch (error) {
      failed(error.message);
    }
    button.disabled = false;
    refresh();
  });
}
