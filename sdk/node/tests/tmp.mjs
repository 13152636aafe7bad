import { randomUUID } from "node:crypto"; import { withDatabase } from "./world.mjs"; import { drivers } from "./drivers.mjs"; import * as st from "../dist/esm/statements.js";
const scope="POST /payments", request='{"cents":100}';
const write = (d, tx, key) => d.run(tx, "INSERT INTO effects (name) VALUES ($1)", [key]);
const BEGIN_HAND="SELECT * FROM hapax.begin($1, $2, $3, request => $4::bytea, method => $5, path => $6, query => $7)";
const FIN="SELECT 1 FROM hapax.finish($1::text::uuid, $2::text::bigint, 201, $3::text::jsonb, $4::bytea)";
const ten=(key)=>["shop",scope,key,Buffer.from(request),"POST","/payments","","86400000 milliseconds","0 milliseconds","2000 milliseconds"];
const ways = {
 hand: (d,key) => d.transaction(async tx => { const [{operation,fence}] = await d.rows(tx, BEGIN_HAND, ["shop",scope,key,Buffer.from(request),"POST","/payments",""]); await d.run(tx,"SAVEPOINT work"); await write(d,tx,key); await d.rows(tx,FIN,[operation,String(fence),"{}",Buffer.from("paid")]); }),
 fullBegin: (d,key) => d.transaction(async tx => { const [{operation,fence}] = await d.rows(tx, st.BEGIN, ten(key)); await d.run(tx,"SAVEPOINT work"); await write(d,tx,key); await d.rows(tx,FIN,[operation,String(fence),"{}",Buffer.from("paid")]); }),
 fullBoth: (d,key) => d.transaction(async tx => { const [{operation,fence}] = await d.rows(tx, st.BEGIN, ten(key)); await d.run(tx,"SAVEPOINT work"); await write(d,tx,key); await d.rows(tx,st.FINISH,[operation,String(fence),"201","{}",Buffer.from("paid")]); }),
 once: (d,key) => d.hapax.once({tenant:"shop",scope,key,request,method:"POST",path:"/payments"}, async tx => { await write(d,tx,key); return {status:201, body:"paid"} }),
};
await withDatabase(async ({url}) => {
  const d = await drivers[process.argv[2] ?? "pg"](url);
  const t = {}, cpu={}; const names = Object.keys(ways);
  for (const k of names) { t[k]=[]; cpu[k]=0 }
  for (let i=0;i<600;i++) for (const k of names) await ways[k](d, randomUUID());
  for (let r=0;r<1500;r++) for (const k of [...names.slice(r%4), ...names.slice(0,r%4)]) { const c0=process.cpuUsage(); const t0=performance.now(); await ways[k](d, randomUUID()); t[k].push(performance.now()-t0); const c=process.cpuUsage(c0); cpu[k]+=(c.user+c.system)/1500 }
  for (const k in t) { t[k].sort((a,b)=>a-b); console.log(k.padEnd(10), "median", t[k][750].toFixed(3), "p25", t[k][375].toFixed(3), "p10", t[k][150].toFixed(3), "cpu", cpu[k].toFixed(0)); }
  await d.close();
});
