// A client of WebSockets: `visitor.mjs URL` talks, `visitor.mjs URL closing` is sent away.
import WebSocket from "ws";

const url = process.argv[2];
const socket = new WebSocket(url, { perMessageDeflate: true });
const large = Buffer.alloc(1 << 20, "x");

const next = () => new Promise((resolve) => socket.once("message", (data) => resolve(data)));
socket.once("error", (error) => {
  console.log("failed", error.message);
  process.exit(1);
});
socket.once("close", (code, reason) => console.log("closed", code, String(reason)));

if (process.argv[3] !== "closing") {
  console.log(String(await next()));
  socket.send("ten");
  console.log("echoed", String(await next()) === "ten");
  socket.send(large);
  console.log("echoed", large.equals(await next()));
  socket.ping();
  await new Promise((resolve) => socket.once("pong", resolve));
  console.log("pong");
  socket.close(4000, "done");
}
